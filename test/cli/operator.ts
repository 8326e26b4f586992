// What the tests of an operator's commands share: a place, and tools that end as they are told.

import { createSemel, Rejected, type Semel } from 'semel';
import { place } from './place.ts';

export function operator(namespace = 'shop') {
  const here = place({ SEMEL_NAMESPACE: namespace });
  return {
    ...here,
    namespace,
    /** Work that is done by a program, not by the command. */
    async by<T>(work: (semel: Semel, mail: ReturnType<typeof mailOf>) => Promise<T>): Promise<T> {
      await using semel = createSemel({
        store: here.store,
        namespace,
        prune: false,
        onWarning: () => undefined,
      });
      return await work(semel, mailOf(semel));
    },
  };
}

/** The address says how it ends: `lost…`, `cut…` in doubt, `no…` refused, else sent. */
export function mailOf(semel: Semel) {
  return semel.tool({
    name: 'mail.send',
    effect: 'write-non-idempotent',
    per: 'ever',
    identity: ['to'],
    run: (args: { to: string; text?: string }) => {
      if (args.to.startsWith('lost')) throw new Error('socket hang up');
      if (args.to.startsWith('cut')) throw new Error('socket hang up after the body');
      if (args.to.startsWith('no')) throw new Rejected('no such box');
      return { id: `m-${args.to}` };
    },
  });
}
