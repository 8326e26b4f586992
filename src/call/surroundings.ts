// What surrounds the code that runs now: the identity that its calls inherit, and the call from whose run it was started.
// One storage for both: Node copies all storages that are in use each time one of them is entered.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Inherited } from './ambient.ts';
import type { ActiveCall } from './sharing.ts';

export interface Surroundings {
  /** Undefined: what the process inherits. */
  readonly identity: Inherited | undefined;
  /** The innermost call, of any ledger: a tool of one may call a tool of another, or one in a transaction. */
  readonly call: ActiveCall | undefined;
}

export const surrounding = new AsyncLocalStorage<Surroundings>();
const nothing: Surroundings = { identity: undefined, call: undefined };

export function surroundings(): Surroundings {
  return surrounding.getStore() ?? nothing;
}

/** The present surroundings, with these changes. */
export function changed({ identity, call }: Partial<Surroundings>): Surroundings {
  const outer = surroundings();
  return { identity: identity ?? outer.identity, call: call ?? outer.call };
}

/** The innermost call from whose run the code that runs now was started. */
export function currentCall(): object | undefined {
  return surroundings().call;
}
