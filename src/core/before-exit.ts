// Work that would soon be due, done when a process has nothing else to do and ends by itself. A process that is killed, or calls
// `process.exit`, does not do it.

const pending = new Set<() => void>();
let isListening = false;

/** Returns how to forget it. */
export function runBeforeExit(work: () => void): () => void {
  if (!isListening) process.on('beforeExit', runPending);
  isListening = true;
  pending.add(work);
  return () => pending.delete(work);
}

/** What it starts keeps the process alive; Node then asks again. */
function runPending(): void {
  const works = [...pending];
  pending.clear();
  for (const work of works) work();
}
