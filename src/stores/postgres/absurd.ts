// A row that no semel has written. The records of Postgres have no checksum, and a value of another kind than the rules know
// would be waited for without end, or fail as if the database were down.

import type { Row } from '../../store/store.ts';

type Sound = (value: unknown) => boolean;

const isNumber: Sound = (value) => typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
const isInstant: Sound = (value) => typeof value === 'number' && Math.abs(value) <= 8.64e15;
const isText: Sound = (value) => typeof value === 'string';
const isBoolean: Sound = (value) => typeof value === 'boolean';
const isObject: Sound = (value) => typeof value === 'object' && value !== null;
const isTextList: Sound = (value) => Array.isArray(value) && value.length > 0 && value.every(isText);
const orNull =
  (sound: Sound): Sound =>
  (value) =>
    value === null || sound(value);

function has(fields: Readonly<Record<string, Sound>>): Sound {
  const entries = Object.entries(fields);
  return (value) =>
    isObject(value) && entries.every(([field, sound]) => sound((value as Record<string, unknown>)[field]));
}

const result = has({ text: orNull(isText), omitted: orNull(isText), remoteRef: orNull(isText) });

const fields: { readonly [Field in keyof Row]: Sound } = {
  namespace: isText,
  key: isText,
  generation: isNumber,
  fence: isNumber,
  keyFence: isNumber,
  token: isText,
  status: isText,
  doubtSince: orNull(isNumber),
  dispatched: isBoolean,
  attempts: isNumber,
  crashes: isNumber,
  version: isText,
  effect: isText,
  keyed: isBoolean,
  fingerprint: orNull(isText),
  owner: isText,
  leaseBoot: orNull(isText),
  leaseUntil: orNull(isNumber),
  retention: orNull(
    has({ windowMs: isNumber, failureWindowMs: isNumber, keep: isBoolean, periodEndsAt: orNull(isNumber) }),
  ),
  args: orNull(isText),
  prepared: orNull(isText),
  content: orNull(isText),
  result: orNull(result),
  error: orNull(has({ code: isText, message: isText, retriable: isBoolean })),
  news: orNull(has({ token: isText, fence: isNumber, found: isBoolean, result })),
  createdAt: isInstant,
  updatedAt: isInstant,
  settledAt: orNull(isInstant),
  expiresAt: orNull(isNumber),
  firstDispatchedAt: orNull(isInstant),
  lastDispatchedAt: orNull(isInstant),
  quietAt: orNull(isNumber),
  tailMs: isNumber,
  notAfter: orNull(isNumber),
  conversation: orNull(isText),
  turn: orNull(isText),
  toolCallId: orNull(isText),
  run: orNull(isText),
  again: orNull(isText),
  caller: orNull(isText),
  movedTo: orNull(isTextList),
};
const checks = Object.entries(fields) as [keyof Row, Sound][];

export function refuseAbsurd(row: Row): void {
  for (const [field, sound] of checks)
    if (!sound(row[field])) throw new Error(`its \`${field}\` is none that semel writes`);
}
