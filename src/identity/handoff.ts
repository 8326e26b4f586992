// A hand-off on its way to another process: what `semel.handoff()` gave, as a header, in the `_meta` of MCP, or in an
// environment. The reader gives it to `semel.within`, which refuses what is damaged.

import { SemelError } from '../core/errors.ts';
import { handoffHeader, handoffMeta, handoffVariable } from '../core/handoff-places.ts';
import { type HeadersLike, readHeader } from './headers.ts';
import { requireId } from './ids.ts';
import type { Environment } from './schedules.ts';

export function handoffToHeaders(handoff: string): { readonly 'Semel-Context': string } {
  return { [handoffHeader]: checkHandoff(handoff) };
}

export function handoffFromHeaders(headers: HeadersLike): string {
  return readHandoff(handoffHeader, readHeader('hand-off', headers, handoffHeader));
}

/** For `_meta` of a request; what is in it already stays. */
export function handoffToMeta<Meta extends object>(
  handoff: string,
  meta?: Meta,
): Meta & { readonly 'dev.semel/context': string } {
  return { ...(meta as Meta), [handoffMeta]: checkHandoff(handoff) };
}

export function handoffFromMeta(meta: Readonly<Record<string, unknown>> | undefined): string {
  return readHandoff(handoffMeta, meta?.[handoffMeta]);
}

/** For the environment of a child. A child that uses semel takes it by itself. */
export function handoffToEnvironment(handoff: string): { readonly SEMEL_CONTEXT: string } {
  return { [handoffVariable]: checkHandoff(handoff) };
}

export function handoffFromEnvironment(env: Environment): string {
  return readHandoff(handoffVariable, env?.[handoffVariable]);
}

function readHandoff(where: string, value: unknown): string {
  const text = typeof value === 'string' ? value : undefined;
  return requireId('hand-off', where, text, 'Let the sender write it there, from `semel.handoff()`.');
}

/** Anything else could carry a line break into a header. */
function checkHandoff(handoff: string): string {
  if (/^semel\d+\.[\w-]+\.[\w-]+$/.test(handoff)) return handoff;
  throw new SemelError('NO_IDENTITY', 'This is not a valid semel hand-off.', {
    next: 'Pass what `semel.handoff()` returned, unchanged.',
  });
}
