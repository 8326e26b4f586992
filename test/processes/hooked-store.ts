// A store with somebody standing before and after each of its methods: the crash points lie there, not in production
// code.

import type { Store } from '../../src/store/index.ts';

export type Method = Exclude<keyof Store, 'close' | 'open'>;

export interface Hooks {
  readonly before?: (method: Method, request: unknown) => void | Promise<void>;
  readonly after?: (method: Method, request: unknown, answer: unknown) => void | Promise<void>;
}

export function hookedStore(store: Store, { before, after }: Hooks): Store {
  return new Proxy(store, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      if (name === 'close' || name === 'open') return method.bind(target);
      const hooked = async (request: unknown, ...rest: unknown[]) => {
        await before?.(name as Method, request);
        const answer: unknown = await method.call(target, request, ...rest);
        await after?.(name as Method, request, answer);
        return answer;
      };
      // Nothing changes at a glance, and nobody can be made to wait for it.
      return name === 'claim' ? Object.assign(hooked, { glance: target.claim.glance }) : hooked;
    },
  });
}
