// Listeners for an abort. Node.js compares a new listener of a signal with all that it has, which for ten thousand calls that wait
// on one signal takes the square of their number.

type Listener = () => void;

interface Listeners {
  readonly all: Set<Listener>;
  readonly onAbort: Listener;
}

const known = new WeakMap<AbortSignal, Listeners>();

/** Calls it once, when the signal aborts; one that is aborted already calls nobody. Returns what removes the listener. */
export function onAbort(signal: AbortSignal | undefined, listener: Listener): () => void {
  if (signal === undefined) return nothing;
  const { all, onAbort } = known.get(signal) ?? listenTo(signal);
  // The same function may be added twice.
  const own = () => listener();
  all.add(own);
  return () => {
    all.delete(own);
    if (all.size > 0 || known.get(signal)?.all !== all) return;
    // A signal may outlive a million calls.
    known.delete(signal);
    signal.removeEventListener('abort', onAbort);
  };
}

function listenTo(signal: AbortSignal): Listeners {
  const all = new Set<Listener>();
  const onAbort = () => {
    for (const each of [...all]) if (all.has(each)) each();
  };
  const made = { all, onAbort };
  known.set(signal, made);
  signal.addEventListener('abort', onAbort, { once: true });
  return made;
}

function nothing(): void {}
