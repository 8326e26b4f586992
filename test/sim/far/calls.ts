// What can be asked of a store about one key, as data: to be asked of the far store, and decided by the rules alone.

import { claim, findLoss } from '../../../src/rules/claim.ts';
import { isLink, listForms, makeLink, nextStep } from '../../../src/rules/forms.ts';
import { clear, dispatch, renew } from '../../../src/rules/holder.ts';
import { resolve } from '../../../src/rules/resolve.ts';
import { settle } from '../../../src/rules/settle.ts';
import { type Step, type Time, view } from '../../../src/rules/state.ts';
import type {
  Asking,
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
  readonly look: Asking;
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
  if (name === 'look') return store.claim.look?.(request) ?? Promise.resolve();
  if (name === 'read') return store.read(request.namespace, request.key);
  return (store[name] as (request: never) => Promise<unknown>)(request as never);
}

/**
 * By the rules, on what is there under these keys at this moment. `lagMs` is what the store adds to leases. A claim may come
 * to a link: with the keys that it leads to among `keys`, it goes on there.
 */
export function decide(
  call: Call,
  keys: readonly string[],
  rows: Rows,
  time: Time,
  { floor, lagMs }: { readonly floor: number; readonly lagMs: number },
): Step<unknown> & { readonly form: number } {
  const own = keys.indexOf(call.request.key);
  const row = rows[own];
  switch (call.name) {
    case 'claim': {
      const newer = row?.movedTo?.filter((key) => keys.includes(key)) ?? [];
      const forms = listForms(call.request, newer);
      const under = forms.keys.map((key) => rows[keys.indexOf(key)]);
      const step = nextStep(forms, under, call.request, time);
      if (step.kind === 'look') return { form: own, row: null, answer: step, events: [] };
      const key = forms.keys[step.form] as string;
      const form = keys.indexOf(key);
      if (step.kind === 'link')
        return {
          form,
          row: makeLink(rows[form], key, step.to, call.request, time, floor),
          answer: step,
          events: [],
        };
      const request = { ...call.request, key, leaseMs: call.request.leaseMs + lagMs };
      const lowest = step.row === undefined ? Math.max(floor, rows[form]?.fence ?? 0) : floor;
      return { form, ...claim(step.row, request, time, lowest) };
    }
    case 'renew':
      return {
        form: own,
        ...renew(row, { ...call.request, leaseMs: call.request.leaseMs + lagMs }, time),
      };
    case 'dispatch':
      return { form: own, ...dispatch(row, call.request, time) };
    case 'clear':
      return { form: own, ...clear(row, call.request, time) };
    case 'settle':
      return { form: own, ...settle(row, call.request, time) };
    case 'resolve':
      return { form: own, ...resolve(row, call.request, time) };
    case 'look':
      return {
        form: own,
        row: null,
        answer: isLink(row) ? undefined : findLoss(row, call.request, time),
        events: [],
      };
    case 'read':
      return { form: own, row: null, answer: row && view(row, time), events: [] };
  }
}
