// Reads the ledger over HTTP, and takes decisions about it.

import { SemelError } from '../core/errors.ts';
import type { ActOptions, Resolution } from '../semel/index.ts';
import type { Context } from './endpoint.ts';
import { anything, flag, instant, object, oneOf, type Read, text } from './schema.ts';

const ref = text({
  max: 2_000,
  about: 'The record as it was looked at: `<id>@<fence>`, or its key in place of the id.',
  example: '3f9c2a1b@1',
});

/** A query has texts only. */
const limit = text({
  max: 4,
  pattern: /^[1-9]\d{0,3}$/,
  example: '100',
  about: 'At most 1000. Default: 100.',
});

const paging = { after: text({ max: 2_000, about: 'The `next` of the page before.' }), limit };

export const recordsQuery = object(
  {},
  {
    tool: text({ max: 64, about: 'Only records of this tool.' }),
    status: oneOf(['running', 'succeeded', 'failed', 'released', 'unknown']),
    prefix: text({ max: 2_000, about: 'Only keys that start so.' }),
    conversation: text({ max: 500 }),
    ...paging,
  },
);

export const recordQuery = object({ ref: text({ max: 2_000, about: 'Its key, id or ref.' }) });

export const doubtsQuery = object({}, { tool: text({ max: 64 }), ...paging });

export const nothing = object({});

const acting = {
  note: text({ max: 2_000, about: 'Why; kept in the history.' }),
  force: flag({ about: 'Also while an attempt holds its lease, and before "not landed" can be known.' }),
};

export const resolveBody = object(
  {
    ref,
    verdict: oneOf(['landed', 'notLanded', 'runAgain', 'abandon'], {
      about: 'runAgain: a repeat is accepted. abandon: nobody will find out, and it is not run again.',
    }),
  },
  {
    value: anything({ about: 'With landed: what it returned, if known.' }),
    remoteRef: text({ max: 500, about: 'With landed: the id that the target gave it.' }),
    lookedAt: instant({ about: 'When the target was looked at, if not just now.' }),
    ...acting,
  },
);

export const actBody = object({ ref }, acting);

export async function listRecords(query: Read<typeof recordsQuery>, { space }: Context): Promise<object> {
  const { tool, limit: shown, ...rest } = query;
  return space.semel.records.list({ ...rest, ...contractOf(tool), ...limitOf(shown) });
}

export async function showRecord(query: Read<typeof recordQuery>, { space }: Context): Promise<object> {
  const { records } = space.semel;
  const name = query.ref.replace(/@\d+(\.[0-9a-z]+)?$/, '');
  const record = await records.get(name);
  if (record === undefined)
    throw new SemelError('INVALID_ARGS', `There is no record ${name}.`, {
      path: 'ref',
      next: 'Is it in another namespace?',
    });
  return { record, history: await records.history(record.key) };
}

export async function listDoubts(query: Read<typeof doubtsQuery>, { space }: Context): Promise<object> {
  const { tool, limit: shown, after } = query;
  const from = after === undefined ? {} : { after };
  return space.semel.doubts.list({ ...from, ...contractOf(tool), ...limitOf(shown) });
}

export async function groupDoubts(_: object, { space }: Context): Promise<object> {
  return { groups: await space.semel.doubts.groups() };
}

export async function resolve(body: Read<typeof resolveBody>, context: Context): Promise<object> {
  const { lookedAt, ref: named } = body;
  const options = {
    ...actOptions(body, context),
    ...(lookedAt === undefined ? {} : { lookedAt: new Date(lookedAt) }),
  };
  return { record: await context.space.semel.doubts.resolve(named, toResolution(body), options) };
}

export async function forget(body: Read<typeof actBody>, context: Context): Promise<object> {
  return { record: await context.space.semel.records.forget(body.ref, actOptions(body, context)) };
}

export async function reopen(body: Read<typeof actBody>, context: Context): Promise<object> {
  return { record: await context.space.semel.records.reopen(body.ref, actOptions(body, context)) };
}

export async function listTools(_: object, { space }: Context): Promise<object> {
  return {
    tools: space.tools.list().map(({ name, contract, source }) => {
      const { effect, per, fields, windowMs, leaseMs, timeoutMs } = contract;
      return { name, source, effect, per, fields, windowMs, leaseMs, timeoutMs };
    }),
  };
}

function toResolution(body: Read<typeof resolveBody>): Resolution {
  const { verdict, value, remoteRef, note } = body;
  if (verdict !== 'landed' && (value !== undefined || remoteRef !== undefined))
    throw new SemelError('INVALID_ARGS', '`value` and `remoteRef` belong to "landed".', { path: 'verdict' });
  if (verdict === 'abandon') return { abandon: note ?? 'no reason was given' };
  if (verdict !== 'landed') return verdict;
  const known = remoteRef === undefined ? {} : { remoteRef };
  if (value !== undefined) return { landed: value, ...known };
  return remoteRef === undefined ? 'landed' : { remoteRef };
}

/** The history shows which token decided. */
function actOptions({ note, force }: Read<typeof actBody>, { credential }: Context): ActOptions {
  return {
    by: credential.name,
    ...(note === undefined ? {} : { note }),
    ...(force === undefined ? {} : { force }),
  };
}

function contractOf(tool: string | undefined): { readonly contract?: string } {
  return tool === undefined ? {} : { contract: tool };
}

function limitOf(shown: string | undefined): { readonly limit?: number } {
  return shown === undefined ? {} : { limit: Math.min(1_000, Number(shown)) };
}
