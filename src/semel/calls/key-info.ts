// Explains what a key is made of: why two calls have different keys, or the same.

import type { Call } from '../../call/index.ts';
import { contentPaths } from '../../core/key/identity.ts';
import { recordId } from '../../core/key/key.ts';

export interface KeyInfo {
  readonly key: string;
  /** The record's short name. */
  readonly id: string;
  readonly namespace: string;
  readonly contract: string;
  /** What bounds the intent: `2026-06-19`, a digest of the conversation, `-` for ever. */
  readonly period: string;
  readonly periodEndsAt: Date | undefined;
  /** The normalised args that make the intent. With the caller's own key they only detect its reuse. */
  readonly identity: unknown;
  /** What may be worded differently for the same intent. */
  readonly content: readonly string[];
  /** Fields that do not matter. */
  readonly volatile: readonly string[];
  readonly again: string | undefined;
  /** Keys under which a live record of an earlier form of the contract would answer this call. */
  readonly olderKeys: readonly string[];
}

export function describeKey(call: Call): KeyInfo {
  const { key, namespace, args, olderKeys, again, periodEndsAt, fingerprint, intent } = call;
  const { name, fields } = call.tool.contract;
  const [, period = ''] = key.split('/');
  const isCallers = fingerprint !== null;
  return {
    key,
    id: recordId(namespace, key),
    namespace,
    contract: name,
    period: isCallers ? '' : period,
    periodEndsAt: periodEndsAt === null ? undefined : new Date(periodEndsAt),
    identity: JSON.parse(intent),
    content: contentPaths(args, fields),
    volatile: fields.volatile,
    again: again ?? undefined,
    olderKeys,
  };
}
