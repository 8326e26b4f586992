// What the bench asks of a peer, and where its package is: in this folder, never in the root. The packages need not be
// there for the types, so each peer's file says itself which few of its names it uses.

import { result } from '../calls.ts';
import type { Candidate } from '../compare.ts';

export interface Peer extends AsyncDisposable {
  readonly name: string;
  /** Executes the first time, replays after that. */
  send(args: object): Promise<unknown>;
}

/** What is guarded. */
export type Effect = () => Promise<unknown>;

export const effect: Effect = async () => result;

export function candidateOf({ name, send }: Peer): Candidate {
  return { name, first: send, again: send };
}

export async function load<T>(specifier: string): Promise<T> {
  return (await import(specifier)) as T;
}
