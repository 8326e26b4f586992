// What can be asked of a store about one key, as data: to be asked of the far store, and decided by the rules alone.

import { claim, formOf } from '../../../src/store/rules/claim.ts';
import { clear, dispatch, renew } from '../../../src/store/rules/cross.ts';
import { resolve } from '../../../src/store/rules/resolve.ts';
import { settle } from '../../../src/store/rules/settle.ts';
import { type Step, type Time, view } from '../../../src/store/rules/state.ts';
import type {
  ClaimRequest,
  ClearRequest,
  DispatchRequest,
  RenewRequest,
  ResolveRequest,
  Row,
  SettleRequest,
  Store,
} from '../../../src/store/store.ts';

interface Requests {
  readonly claim: ClaimRequest;
  readonly renew: RenewRequest;
  readonly dispatch: DispatchRequest;
  readonly clear: ClearRequest;
  readonly settle: SettleRequest;
  readonly resolve: ResolveRequest;
  readonly read: { readonly namespace: string; readonly key: string };
}

export type Call = {
  [Name in keyof Requests]: { readonly name: Name; readonly request: Requests[Name] };
}[keyof Requests];

export type Rows = readonly (Row | undefined)[];

export function keysOf({ name, request }: Call): readonly string[] {
  return name === 'claim' ? [request.key, ...request.olderKeys] : [request.key];
}

export function ask(store: Store, { name, request }: Call): Promise<unknown> {
  if (name === 'read') return store.read(request.namespace, request.key);
  return (store[name] as (request: never) => Promise<unknown>)(request as never);
}

/** By the rules, on what is there at this moment. `lagMs` is what the store adds to leases. */
export function decide(
  call: Call,
  rows: Rows,
  time: Time,
  { floor, lagMs }: { readonly floor: number; readonly lagMs: number },
): Step<unknown> & { readonly form: number } {
  const [row] = rows;
  switch (call.name) {
    case 'claim': {
      const form = rows.length === 1 ? 0 : formOf(rows, time);
      const key = keysOf(call)[form] as string;
      const request = { ...call.request, key, leaseMs: call.request.leaseMs + lagMs };
      return { form, ...claim(rows[form], request, time, floor) };
    }
    case 'renew':
      return {
        form: 0,
        ...renew(row, { ...call.request, leaseMs: call.request.leaseMs + lagMs }, time),
      };
    case 'dispatch':
      return { form: 0, ...dispatch(row, call.request, time) };
    case 'clear':
      return { form: 0, ...clear(row, call.request, time) };
    case 'settle':
      return { form: 0, ...settle(row, call.request, time) };
    case 'resolve':
      return { form: 0, ...resolve(row, call.request, time) };
    case 'read':
      return { form: 0, row: null, answer: row && view(row, time), events: [] };
  }
}
