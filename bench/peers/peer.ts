// What the bench asks of a peer, and where its package is: in this folder, never in the root. The packages need not be
// there for the types, so each peer's file says itself which few of its names it uses.

export interface Peer extends AsyncDisposable {
  readonly name: string;
  /** Executes the first time, replays after that. */
  send(args: object): Promise<unknown>;
}

/** What the effect gives; counted, so that a bench can tell that replays did not execute. */
export type Effect = () => Promise<unknown>;

export async function load<T>(specifier: string): Promise<T> {
  return (await import(specifier)) as T;
}
