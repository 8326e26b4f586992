// What an endpoint is: who may use it, what it takes, and what it does.

import type { Credential, Role } from './access/tokens.ts';
import type { JsonSchema, Schema } from './exchange/schema.ts';
import type { Space, Spaces } from './space.ts';

export interface Context {
  readonly space: Space;
  readonly credential: Credential;
  readonly spaces: Pick<Spaces, 'of'>;
  readonly logins: { createCode(credential: Credential): object };
  /** The span that asks, where the client traces. */
  readonly traceparent: string | undefined;
  /** The client has hung up, and gets no answer. */
  readonly hasLeft: boolean;
  /** Aborts when the client hangs up. Made when it is first read: most requests need only `hasLeft`. */
  readonly signal: AbortSignal;
}

export interface Endpoint {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly role: Role;
  /** For the documentation. */
  readonly about: string;
  /** Schema of a POST's body or a GET's query. */
  readonly input: Schema<unknown>;
  /** Schema of its answer, for the documentation. */
  readonly output?: JsonSchema;
  /** The header `traceparent` is kept. */
  readonly isTraced?: true;
  /** It answers with events that do not end. */
  readonly isStream?: true;
  /** A list of bodies may be sent instead of one. */
  readonly isBatch?: true;
  /** What a batch that is too long still says of an item that was done: it must not look undone. */
  readonly shorten?: (answer: object) => object;
  run(input: never, context: Context): Promise<object>;
}
