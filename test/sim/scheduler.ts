// Virtual time: one queue of events, each belonging to a process or to the world outside. Between two events all
// microtasks run to their end, so a history depends on the order of events alone.

/** A process as the scheduler sees it: its events wait while it is stopped, and are gone once it is dead. */
export interface Owner {
  readonly name: string;
  alive: boolean;
  stoppedUntil: number;
  /** How long its machine has slept: its timers and its monotonic clock know nothing of that. */
  asleepMs?: number;
  wakesAt?: number;
  /** It makes no calls any more. */
  isClosing?: boolean;
  /** When it ended what it still had: its runs may go on, and nobody is told. */
  closedAt?: number;
}

interface Event {
  at: number;
  readonly order: number;
  readonly owner: Owner | undefined;
  readonly label: string;
  run: (() => void) | undefined;
  /** It has come while its owner stood still. */
  isWaiting?: boolean;
}

export interface Timer {
  readonly event: Event;
}

export interface Scheduler {
  /** True time in milliseconds, which nobody in the simulation can read directly. */
  readonly now: number;
  readonly events: number;
  /** A number that depends on every event so far and its time. */
  readonly fingerprint: number;
  after(ms: number, owner: Owner | undefined, label: string, run: () => void): Timer;
  cancel(timer: Timer | undefined): void;
  /** Resolves, by an event of this owner, after a while. */
  pause(ms: number, owner: Owner | undefined, label: string): Promise<void>;
  /** Its machine sleeps: nothing of it runs, and its timers do not count the time. What comes from outside waits. */
  sleep(owner: Owner, ms: number): void;
  /** Whoever is stopped or asleep goes on now. */
  wake(owner: Owner): void;
  /** Runs until the queue is empty. `before` may kill or stop the owner of an event instead of running it. */
  run(before: (owner: Owner, label: string) => void): void;
}

/** No history needs more, not even one that renews a short lease during long pauses between tries; one that does is stuck. */
const maxEvents = 8_000;

export class Endless extends Error {
  override readonly name = 'Endless';
}

export function createScheduler(trace: ((line: string) => void) | undefined): Scheduler {
  const heap: Event[] = [];
  let now = 0;
  let order = 0;
  let events = 0;
  let fingerprint = 0x811c9dc5;

  function run(before: (owner: Owner, label: string) => void): void {
    for (let event = pop(heap); event !== undefined; event = pop(heap)) {
      const { owner } = event;
      if (event.run === undefined || owner?.alive === false) continue;
      now = event.at;
      if (owner !== undefined && owner.stoppedUntil > now) {
        event.at = owner.stoppedUntil;
        event.isWaiting = true;
        push(heap, event);
        continue;
      }
      if (owner !== undefined) {
        before(owner, event.label);
        if (!owner.alive) continue;
        if (owner.stoppedUntil > now) {
          event.at = owner.stoppedUntil;
          event.isWaiting = true;
          push(heap, event);
          continue;
        }
      }
      events += 1;
      if (events > maxEvents) throw new Endless(`still ${heap.length + 1} events after ${maxEvents}`);
      fingerprint = Math.imul(fingerprint ^ (now & 0xffffff) ^ (event.order << 8), 16777619);
      trace?.(`${stamp(now)} ${owner?.name ?? '·'} ${event.label}`);
      event.run();
      drain();
    }
  }

  function putOff(owner: Owner, ms: number): void {
    owner.asleepMs = (owner.asleepMs ?? 0) + ms;
    for (const event of heap.splice(0)) {
      if (event.owner === owner && event.label === 'timer') event.at += ms;
      push(heap, event);
    }
  }

  const scheduler: Scheduler = {
    get now() {
      return now;
    },
    get events() {
      return events;
    },
    get fingerprint() {
      return fingerprint;
    },
    after(ms, owner, label, work) {
      order += 1;
      const event: Event = { at: now + Math.max(0, Math.round(ms)), order, owner, label, run: work };
      push(heap, event);
      return { event };
    },
    cancel(timer) {
      if (timer !== undefined) timer.event.run = undefined;
    },
    pause: (ms, owner, label) => new Promise((resolve) => void scheduler.after(ms, owner, label, resolve)),
    sleep(owner, ms) {
      owner.stoppedUntil = now + ms;
      owner.wakesAt = now + ms;
      putOff(owner, ms);
    },
    wake(owner) {
      if (owner.stoppedUntil <= now) return;
      if (owner.wakesAt === owner.stoppedUntil) putOff(owner, now - owner.stoppedUntil);
      owner.stoppedUntil = now;
      owner.wakesAt = now;
      for (const event of heap.splice(0)) {
        if (event.owner === owner && event.isWaiting && event.at > now) event.at = now;
        push(heap, event);
      }
    },
    run,
  };
  return scheduler;
}

export function stamp(ms: number): string {
  return `${(ms / 1000).toFixed(3).padStart(9)}s`;
}

const { _tickCallback: runMicrotasks } = process as unknown as { _tickCallback?: () => void };

/**
 * Runs all microtasks now. Node's own name for it is undocumented but old; a real turn of the event loop between
 * two events would cost ten times as much. It does nothing inside a microtask, hence `outside`.
 */
export function drain(): void {
  runMicrotasks?.();
}

/** Calls `work` where `drain` works, and says so if it does not. */
export function outside<T>(work: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    setImmediate(() => {
      try {
        assertDrains();
        resolve(work());
      } catch (error) {
        reject(error as Error);
      }
    });
  });
}

function assertDrains(): void {
  let steps = 0;
  const walk = async () => {
    for (; steps < 100; steps += 1) await null;
  };
  void walk();
  drain();
  if (steps !== 100) throw new Error('This Node does not run microtasks on demand: the simulator needs it.');
}

function isBefore(a: Event, b: Event): boolean {
  return a.at === b.at ? a.order < b.order : a.at < b.at;
}

function push(heap: Event[], event: Event): void {
  let at = heap.length;
  heap.push(event);
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (!isBefore(event, heap[parent] as Event)) break;
    heap[at] = heap[parent] as Event;
    at = parent;
  }
  heap[at] = event;
}

function pop(heap: Event[]): Event | undefined {
  const first = heap[0];
  const last = heap.pop();
  if (first === undefined || last === undefined || first === last) return first;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child += 1;
    if (!isBefore(heap[child] as Event, last)) break;
    heap[at] = heap[child] as Event;
    at = child;
  }
  heap[at] = last;
  return first;
}
