// The order of a run's steps, kept with the run, so that an attempt whose program has other steps is stopped before it claims
// anything. Each place in the order is a record of its own, written before its step is claimed: what is recorded is
// always the beginning of what was requested.

import { SemelError } from '../../core/errors.ts';
import { Watch } from '../../core/watched.ts';
import { forgetTool, type Semel } from '../../semel/index.ts';
import type { RunContext } from '../context.ts';
import { contractName } from '../slots/run-id.ts';

/** One step of a run, as its program requested it. */
export interface Entry {
  readonly kind: 'step' | 'once' | 'artifact';
  readonly name: string;
  /** Digest of its args. */
  readonly args: string;
  /** Steps that were requested together share a stage, and have no order among themselves. */
  readonly stage: number;
  /** Requested by one of several parallel branches: its position depends on their speed. */
  readonly isLoose: boolean;
  /** The key of its record, if the record can show that nothing of the step is left; null: assume that something is. */
  readonly key: string | null;
}

interface OrderOptions {
  readonly semel: Semel;
  readonly run: RunContext;
  /** The run, for people. */
  readonly label: string;
  readonly leaseMs: number;
}

export interface Order {
  /** The steps inside the one at `path`; the run's own have an empty path. `isApart`: none of them has a place in the order. */
  sequence(path: readonly string[], isApart?: boolean): Sequence;
  /** Throws if an earlier step of this attempt was refused as changed. */
  check(): void;
}

export interface Sequence {
  readonly path: readonly string[];
  readonly isEmpty: boolean;
  /** Hears of errors that the function does not wait for. */
  readonly watch: Watch;
  /** Adds a step, in call order. Call `settle` when it has ended. */
  ask(step: Pick<Entry, 'kind' | 'name' | 'args'>, keyOf?: () => Promise<string>): Asked;
  /**
   * A step of code that another guarded call runs, such as an item of a batch, or the making of a file. It has no place in the
   * order: where that call is answered from its record, a later attempt does not ask for the step.
   */
  askApart(step: Pick<Entry, 'kind' | 'name' | 'args'>): Asked;
  /** Its steps have no place in the order. */
  readonly isApart: boolean;
  /** Waits for running steps, then throws if this attempt left out steps of an earlier one. */
  finish(): Promise<void>;
}

interface Asked {
  /** Rejects with STEP_CHANGED. Nothing of the step may be claimed before. */
  readonly isInOrder: Promise<void>;
  /** It was requested before in this attempt. */
  readonly isRepeated: boolean;
  settle(): void;
}

/** `accept` starts a new order: what was recorded is not compared any more. */
export async function openOrder(options: OrderOptions, accept: string | undefined): Promise<Order> {
  const { semel, run, label } = options;
  // Nothing is refused that is only observed, and where nothing is recorded there is no order.
  const isEnforced = isOrderKept(options);
  let edition = 0;
  while (isEnforced && (await read({ edition: edition + 1, path: [], at: -1 })) !== undefined) edition += 1;
  if (isEnforced && accept !== undefined && (await read({ edition, path: [], at: 0 })) !== undefined) {
    edition += 1;
    await write({ edition, path: [], at: -1 }, { accepted: accept });
  }
  let changed: SemelError | undefined;

  return {
    sequence,
    check() {
      if (changed !== undefined) throw changed;
    },
  };

  function sequence(path: readonly string[], isApart = !isEnforced): Sequence {
    const asked: Entry[] = [];
    const askedApart = new Set<string>();
    const watch = new Watch();
    const known = new Map<string, Promise<void>>();
    const running = new Set<Promise<void>>();
    let recorded: Entry[] | undefined;
    let lastChecked = Promise.resolve();
    let stage = -1;
    let hasSettled = false;
    let isLoose = false;

    return {
      path,
      watch,
      isApart,
      get isEmpty() {
        return asked.length === 0;
      },
      askApart,
      ask(step, keyOf) {
        if (isApart) return askApart(step);
        const before = asked.find(isSame(step));
        if (before !== undefined && before.args !== step.args) throw otherArgs(label, step.name);
        if (before === undefined) {
          if (running.size === 0 && !isLoose) {
            stage += 1;
            hasSettled = false;
          } else if (hasSettled) isLoose = true;
          const entry: Entry = { ...step, stage, isLoose, key: null };
          asked.push(entry);
          // One after the other: the recorded steps must be a prefix of the requested ones.
          const isInOrder = lastChecked.then(() => take(entry, keyOf));
          lastChecked = isInOrder.catch(() => undefined);
          known.set(nameOf(step), isInOrder);
        }
        let end: () => void = () => undefined;
        const ended = new Promise<void>((resolve) => {
          end = resolve;
        });
        running.add(ended);
        return {
          isInOrder: known.get(nameOf(step)) as Promise<void>,
          isRepeated: before !== undefined,
          settle() {
            running.delete(ended);
            hasSettled = true;
            end();
          },
        };
      },
      async finish() {
        while (running.size > 0) await Promise.all(running);
        if (changed !== undefined) throw changed;
        await watch.finish();
        if (isApart) return;
        recorded ??= await load();
        await refuseIfLeft(recorded.filter(isMissing));
      },
    };

    function askApart(step: Pick<Entry, 'kind' | 'name' | 'args'>): Asked {
      const name = `${nameOf(step)} ${step.args}`;
      const isRepeated = askedApart.has(name);
      askedApart.add(name);
      return { isInOrder: Promise.resolve(), isRepeated, settle: () => undefined };
    }

    /** Compares a step with what is recorded, and records it if it is new. */
    async function take(entry: Entry, keyOf: (() => Promise<string>) | undefined): Promise<void> {
      for (;;) {
        if (changed !== undefined) throw changed;
        recorded ??= await load();
        const same = recorded.find(isSame(entry));
        if (same !== undefined && same.args !== entry.args) throw refuse(recorded);
        // A branch may be ahead of another now that was ahead of it before.
        const isOrdered = !entry.isLoose && same?.isLoose !== true;
        if (isOrdered) {
          const isBefore = (each: Entry) => same === undefined || each.stage < same.stage;
          await refuseIfLeft(recorded.filter((each) => isMissing(each) && !each.isLoose && isBefore(each)));
        }
        if (same !== undefined) return;
        const key = (await keyOf?.()) ?? null;
        const stored = (await write({ edition, path, at: recorded.length }, { ...entry, key })) as Entry;
        recorded.push(stored);
        // An attempt that lost the run may have been faster: compare with its step.
        if (isSame(entry)(stored) && stored.args === entry.args) return;
      }
    }

    function isMissing(each: Entry): boolean {
      return !asked.some(isSame(each));
    }

    /** A step that failed left nothing behind, so it may change. */
    async function refuseIfLeft(missing: readonly Entry[]): Promise<void> {
      for (const { key } of missing) {
        const record = key === null ? undefined : await semel.records.get(key);
        const isGone = key !== null && (record === undefined || record.status === 'released');
        if (!isGone) throw refuse(recorded ?? []);
      }
    }

    function refuse(before: readonly Entry[]): SemelError {
      changed = stepChanged(label, path, before, asked);
      return changed;
    }

    async function load(): Promise<Entry[]> {
      const found: Entry[] = [];
      for (;;) {
        const entry = await read({ edition, path, at: found.length });
        if (entry === undefined) return found;
        found.push(entry as Entry);
      }
    }
  }

  async function read(place: Place): Promise<unknown> {
    const tool = orderTool(options, undefined);
    const key = semel.keyOf(tool, place, { run: run.text });
    forgetTool(tool);
    return (await semel.records.get((await key).key))?.value;
  }

  /** What is stored at this place: the first that was written there. */
  async function write(place: Place, entry: object): Promise<unknown> {
    const tool = orderTool(options, entry);
    const writing = tool(place, { run: run.text });
    forgetTool(tool);
    return writing;
  }
}

interface Place {
  readonly edition: number;
  readonly path: readonly string[];
  readonly at: number;
}

function orderTool({ semel, run, leaseMs }: OrderOptions, entry: object | undefined) {
  return semel.tool({
    name: contractName('step-order', run.id.job),
    effect: 'irreversible',
    per: 'run',
    lease: leaseMs,
    window: run.windowMs,
    // Writing it again is harmless.
    onDoubt: 'rerun',
    share: true,
    run: (_: Place) => entry as unknown,
  });
}

function isOrderKept(options: OrderOptions): boolean {
  const tool = orderTool(options, undefined);
  forgetTool(tool);
  return tool.contract.mode === 'enforce';
}

function nameOf({ kind, name }: Pick<Entry, 'kind' | 'name'>): string {
  return `${kind} ${name}`;
}

function isSame(step: Pick<Entry, 'kind' | 'name'>): (other: Pick<Entry, 'kind' | 'name'>) => boolean {
  return (other) => other.kind === step.kind && other.name === step.name;
}

function otherArgs(label: string, name: string): SemelError {
  return new SemelError(
    'INVALID_ARGS',
    `${label}: ${name} is called twice in one attempt, with different args.`,
    { path: 'args', next: `Give each its own name, for example \`${name} 1\` and \`${name} 2\`.` },
  );
}

function stepChanged(
  label: string,
  path: readonly string[],
  before: readonly Entry[],
  now: readonly Entry[],
): SemelError {
  const list = (entries: readonly Entry[], others: readonly Entry[]) =>
    entries.map((entry) => {
      const other = others.find(isSame(entry));
      return other !== undefined && other.args !== entry.args ? `${entry.name} (other args)` : entry.name;
    });
  const lists = { before: list(before, now), now: list(now, before) };
  const where = path.length === 0 ? '' : ` inside ${path.join(' / ')}`;
  return new SemelError(
    'STEP_CHANGED',
    `${label}: its steps${where} are not those of its last attempt. Before: ${lists.before.join(', ')}. Now: ${lists.now.join(', ') || 'none'}.`,
    {
      next: "Nothing more was claimed. Run the program as it was; or accept the new steps with run({ acceptChange: 'why' }): steps of the same name and args keep their results, all others run.",
      evidence: lists,
    },
  );
}
