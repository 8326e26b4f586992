// Named normalisers for identity fields: two spellings of one thing give one key. Each is pure and idempotent. Refuses
// invalid and ambiguous values: a wrong guess would merge two intents.

import { SemelError } from '../errors.ts';
import { limits } from '../limits.ts';
import { describeKind } from '../plain.ts';

export const normalisers = { email, e164, money, trim, nfc, lower } as const satisfies Record<
  string,
  (value: unknown, path: string) => unknown
>;

/**
 * The local part is lower-cased too, although RFC 5321 lets a host tell `Ann@` from `ann@`: no provider of note
 * does, while models and forms change case freely, and then the same person would get the mail twice.
 */
function email(value: unknown, path: string): string {
  // Composed again: a lower-case letter and its mark may have a composed form that the capital had not.
  const address = composed(composed(text(value, path).trim(), path).toLowerCase(), path);
  if (/^[^\s@]+@[^\s@]+$/.test(address)) return address;
  throw refusal(
    path,
    'is not an e-mail address',
    'Pass one address such as ann@example.com, without a name.',
  );
}

function e164(value: unknown, path: string): string {
  const given = text(value, path);
  // Some countries keep this zero and some drop it: both readings are real numbers.
  if (/\(\s*0\s*\)/.test(given)) {
    throw refusal(
      path,
      'has an optional "(0)"',
      'Write the number as it is dialled from abroad, such as +442079460958.',
    );
  }
  const dialled = given.replace(/[\s().\-\u2010-\u2015\u2212]/g, '').replace(/^00/, '+');
  if (/^\+[1-9]\d{6,14}$/.test(dialled)) return dialled;
  throw refusal(
    path,
    'is not an international phone number',
    'Pass + and 7 to 15 digits, such as +442079460958.',
  );
}

/**
 * One canonical decimal text: `20`, `'20'`, `'20.0'` and `'020.00'` are all `'20'`, so minor units stay the integers
 * they are. Nothing is scaled: whether a field holds minor or major units is up to the contract.
 */
function money(value: unknown, path: string): string {
  const given =
    typeof value === 'number' || typeof value === 'bigint' ? decimal(value, path) : text(value, path).trim();
  const parts = given.length > 64 ? null : /^([+-]?)0*(\d+)(?:\.(?=\d)(\d*?)0*)?$/.exec(given);
  if (parts === null) {
    // '1,000' is a thousand or one, depending on the country.
    throw refusal(
      path,
      'is not an amount',
      "Pass digits with at most one '.', such as '1000.50', without a currency.",
    );
  }
  const [, sign, whole = '0', fraction = ''] = parts;
  const amount = fraction === '' ? whole : `${whole}.${fraction}`;
  return sign === '-' && amount !== '0' ? `-${amount}` : amount;
}

function decimal(value: number | bigint, path: string): string {
  // Rounding errors (0.1 + 0.2) would give one amount two keys; exact amounts fit in 15 digits.
  if (typeof value === 'bigint' || Number.isSafeInteger(value) || Number(value.toPrecision(15)) === value) {
    return String(value);
  }
  throw refusal(
    path,
    'is not an exact amount',
    "Pass minor units as an integer, or the amount as a text like '20.30'.",
  );
}

function trim(value: unknown, path: string): string {
  return text(value, path).trim();
}

/** One form for a letter with its mark, typed as one character or as two. Ids that differ only in that merge. */
function nfc(value: unknown, path: string): string {
  return composed(text(value, path), path);
}

/** Sorting a long run of marks takes minutes. No script has this many on one letter. */
function composed(given: string, path: string): string {
  if (!tooManyMarks.test(given)) return given.normalize('NFC');
  throw refusal(
    path,
    `has more than ${limits.combiningMarks} combining marks in a row`,
    'Pass text that a person could read.',
  );
}

const tooManyMarks = new RegExp(`\\p{M}{${limits.combiningMarks + 1}}`, 'u');

function lower(value: unknown, path: string): string {
  return text(value, path).toLowerCase();
}

function text(value: unknown, path: string): string {
  if (typeof value === 'string') return value;
  throw refusal(path, `is ${describeKind(value)}, not a text`, 'Pass a string.');
}

function refusal(path: string, what: string, next: string): SemelError {
  return new SemelError('INVALID_ARGS', `${path} ${what}.`, { path, next });
}
