// Where a process can die on the path of a call, in the order in which a call comes by.

import { type LineName, lineOf } from './lines.ts';

export const points = [
  /** The call is made, the claim not yet asked for. */
  'before claim',
  /** The claim is durable, nothing else has happened. */
  'claimed',
  /** `prepare` has its output, the line is not crossed. */
  'prepared',
  /** The line is crossed, the request has not left. */
  'dispatched',
  /** The target has it, the answer was not looked at. */
  'landed',
  /** The ledger knows the ending. */
  'settled',
  /** All is done, the caller has heard nothing. */
  'before the reply',
] as const;

export type Point = (typeof points)[number];

/** Where the one dies who came after: the tool has told what it found · "not landed" is believed, the call goes on. */
export type LaterPoint = 'verifying' | 'cleared' | 'dispatched' | 'landed';

/** Where a process stands still besides: its lease was found to be held, and the line is asked for. */
export type StoppingPoint = Point | 'crossing';

/** Reads have no record, and most contracts no `prepare`. */
export function exists(name: LineName, point: Point): boolean {
  const { effect, prepare } = lineOf(name);
  if (point === 'prepared') return prepare === true;
  return effect !== 'read' || point === 'dispatched' || point === 'landed' || point === 'before the reply';
}
