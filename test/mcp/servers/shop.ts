// The tools that the servers of both SDKs have, so that one test can ask all of them. Effects are lines of a file.

import { appendFileSync } from 'node:fs';
import { z } from 'zod';

type Register = (
  name: string,
  config: object,
  // biome-ignore lint/suspicious/noExplicitAny: the two SDKs differ in what they pass.
  handler: (args: any, extra: any) => unknown,
) => unknown;

export interface ShopOptions {
  readonly effects: string;
  /** Version 1 takes the fields of a schema, version 2 the schema. */
  readonly isRaw: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly wrap?: (name: string, handler: (args: any, extra: any) => unknown) => any;
}

const fields = { to: z.string(), body: z.string().optional() };

export function stock(
  register: Register,
  { effects, isRaw, wrap = (_, handler) => handler }: ShopOptions,
): void {
  const inputSchema = isRaw ? fields : z.object(fields);
  const outputSchema = isRaw
    ? { to: z.string(), n: z.number() }
    : z.object({ to: z.string(), n: z.number() });
  let n = 0;
  const act = (name: string, { to, body = '' }: { to: string; body?: string }) => {
    n += 1;
    appendFileSync(effects, `${name} ${to} ${body}\n`);
    return { content: [{ type: 'text', text: `${name} ${n}` }], structuredContent: { to, n } };
  };
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  const add = (name: string, config: object, handler: (args: any, extra: any) => unknown) =>
    register(name, { inputSchema, ...config }, wrap(name, handler));
  add('send', { outputSchema }, (args) => act('send', args));
  add('look', { annotations: { readOnlyHint: true } }, (args) => act('look', args));
  add('put', { annotations: { idempotentHint: true } }, (args) => act('put', args));
  add('fail', {}, (args) => ({ ...act('fail', args), isError: true }));
  add('boom', {}, (args) => {
    act('boom', args);
    throw new Error('socket hang up');
  });
  add('slow', {}, async (args) => {
    const result = act('slow', args);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    return result;
  });
}
