// How an incident of the demo is defined: what the demo does, and what its processes do.

import type { Semel } from '../../../semel/index.ts';

export type Way = 'bare' | 'semel';

/** What the demo's own process can do. */
export interface Stage {
  readonly way: Way;
  say(text: string): void;
  /** Starts a process that acts, and resolves when it has ended, by itself or killed. */
  start(part?: Part): Promise<void>;
  /** Starts several processes that begin at the same moment. */
  startTogether(parts: readonly Part[]): Promise<void>;
  /** On the ledger of the processes. */
  semel(): Semel;
}

/** One process's part in the incident. */
export interface Part {
  readonly nth?: number;
  readonly dies?: boolean;
}

/** What a process can do. */
export interface Actor {
  readonly way: Way;
  readonly part: Part;
  readonly folder: string;
  say(text: string): Promise<void>;
  /** Makes the effect at the target; the answer is the target's own id for it. */
  send(what: string, key?: string): Promise<{ readonly id: string }>;
  semel(): Semel;
  /** Ends this process as a power cut would. */
  die(): Promise<never>;
}

export interface Incident {
  readonly title: string;
  readonly happened: string;
  /** The name of the effect: singular and plural. */
  readonly effect: readonly [one: string, many: string];
  /** On the first request under each key, the target performs the effect and then cuts the connection. */
  readonly losesAnswers?: true;
  play(stage: Stage): Promise<void>;
  act(actor: Actor): Promise<void>;
}
