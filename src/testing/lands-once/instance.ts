// Instances of the tool under test on the user's own store: each as a process of its own would have it, with an
// empty cache and real timers; one kind dies between its effect and its record.

import type { Clock } from '../../core/clock.ts';
import { type Clone, type CloneChanges, type CloneTool, overrideStore } from '../../semel/index.ts';
import type { Store } from '../../store/store.ts';

export interface Instance extends Clone {
  end(): Promise<void>;
}

export interface MortalInstance extends Instance {
  /** Gives its key once the process is dead: its effect has landed, its record never will, its lease is over. */
  readonly died: Promise<string>;
}

type Definition = NonNullable<CloneChanges['definition']>;

// A test may fake the timers of its own process; waiting for another worker is real.
const { setTimeout: startTimer, clearTimeout: stopTimer } = globalThis;

export function realPause(ms: number): Promise<void> {
  return new Promise((resolve) => void startTimer(resolve, ms));
}

export function startInstance(rebuild: CloneTool, definition: Definition): Instance {
  const timers = realTimers();
  const sibling = rebuild({ definition, clock: timers.clock });
  return {
    ...sibling,
    async end() {
      await sibling.semel.close({ grace: 0 });
      timers.stop();
    },
  };
}

export function startMortal(rebuild: CloneTool, definition: Definition): MortalInstance {
  const timers = realTimers();
  let die: (key: string) => void = () => undefined;
  const died = new Promise<string>((resolve) => {
    die = resolve;
  });
  const never = new Promise<never>(() => undefined);
  const sibling = rebuild({
    definition,
    clock: timers.clock,
    store: (store: Store) =>
      overrideStore(store, {
        async settle({ namespace, key, token, fence, generation }) {
          // The time until somebody may take over is not waited for: the lease ends with its holder.
          await store.renew({ namespace, key, token, fence, generation, leaseMs: 0, inFlightForMs: 0 });
          timers.stop();
          die(key);
          return never;
        },
      }),
  });
  return {
    ...sibling,
    died,
    // A dead process does not close anything.
    end: async () => timers.stop(),
  };
}

function realTimers(): { clock(clock: Clock): Clock; stop(): void } {
  const timers = new Set<unknown>();
  let stopped = false;
  return {
    clock: (clock) => ({
      now: () => clock.now(),
      mono: () => clock.mono(),
      setTimeout(run, ms) {
        if (stopped) return undefined;
        const timer = startTimer(() => {
          timers.delete(timer);
          run();
        }, ms);
        timers.add(timer);
        return timer;
      },
      clearTimeout(timer) {
        timers.delete(timer);
        stopTimer(timer as NodeJS.Timeout);
      },
    }),
    stop() {
      stopped = true;
      for (const timer of timers) stopTimer(timer as NodeJS.Timeout);
      timers.clear();
    },
  };
}
