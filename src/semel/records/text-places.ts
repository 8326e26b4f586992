// In which parts of a record a text occurs: for people who search with whatever they have in hand. Case matters.

import { recordId } from '../../core/key/key.ts';
import type { RecordInfo } from './record-info.ts';

const fields = [
  'toolCallId',
  'conversation',
  'turn',
  'run',
  'caller',
  'owner',
  'remoteRef',
  'again',
] as const;
const maxPlaces = 5;
/** Deeper places are not named one by one. */
const maxDepth = 20;

/** `key`, `id`, `toolCallId`, `args.order`; none: it is not in this record. */
export function findTextPlaces(info: RecordInfo, text: string): readonly string[] {
  const places: string[] = [];
  const check = (place: string, value: unknown) => {
    if (typeof value === 'string' && value.includes(text)) places.push(place);
  };
  const name = withoutFence(text);
  if (isRecordId(name) && recordId(info.namespace, info.key).startsWith(name)) places.push('id');
  if (isInKey(info.key, text)) places.push('key');
  for (const field of fields) check(field, info[field]);
  check('error', info.error?.message);
  walk('args', info.args, text, places, 0);
  walk('result', info.value, text, places, 0);
  return places.slice(0, maxPlaces);
}

/** As a caller's own key is written inside a key. */
export function inKey(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

/** A part of the key, as typed. The name in a ref is a whole key or digest: in a mail address it looks like one. */
export function isInKey(key: string, text: string): boolean {
  const name = withoutFence(text);
  return (
    key.includes(text) ||
    key.includes(inKey(text)) ||
    (name !== text && (key === name || key.endsWith(`/${name}`)))
  );
}

export function isRecordId(text: string): boolean {
  return /^[0-9a-z]{4,40}$/.test(text);
}

/** A ref names one state of a record; the record is what is searched. For names only: a mail address may end like a ref. */
export function withoutFence(ref: string): string {
  return ref.replace(/@\d+(\.[0-9a-z]+)?$/, '');
}

function walk(place: string, value: unknown, text: string, places: string[], depth: number): void {
  if (places.length >= maxPlaces) return;
  if (depth > maxDepth) {
    if (JSON.stringify(value)?.includes(JSON.stringify(text).slice(1, -1)) === true) places.push(place);
    return;
  }
  if (typeof value === 'string' ? value.includes(text) : isNumber(value) && String(value) === text)
    places.push(place);
  else if (Array.isArray(value))
    for (const [n, each] of value.entries()) walk(`${place}[${n}]`, each, text, places, depth + 1);
  else if (typeof value === 'object' && value !== null)
    for (const [name, each] of Object.entries(value)) {
      if (name === text) places.push(`${place}.${name}`);
      else walk(`${place}.${name}`, each, text, places, depth + 1);
    }
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'bigint';
}
