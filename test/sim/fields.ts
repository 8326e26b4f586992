// The args that simulated tools take: what each field means, how many ways there are to spell it, and what a schema does
// to it. `meaningOf` is a model of identity of the simulator's own: nothing of it is taken from src.

import type { StandardSchema } from '../../src/core/contract/standard-schema.ts';
import type { Chance } from './chance.ts';

/** What a caller wants, field by field, in its one true form. */
export interface Meaning {
  readonly order: string;
  readonly payment: string;
  readonly to: string;
  readonly phone: string;
  readonly amount: number;
  readonly region: string;
  readonly currency: string;
  readonly priority: string;
  readonly 'customer.id': string;
  readonly 'customer.tier': string;
}

export type Field = keyof Meaning;

export const allFields: readonly Field[] = [
  'order',
  'payment',
  'to',
  'phone',
  'amount',
  'region',
  'currency',
  'priority',
  'customer.id',
  'customer.tier',
];

/** What a schema of the simulation does to args besides passing them on. */
export interface SchemaRules {
  /** `order_id` is an older name of `order`. */
  readonly aliases: boolean;
  /** `payment` and `currency` are derived from `order` and `region` where they are not given. */
  readonly derives: boolean;
  /** `priority` and `customer.tier` have constant defaults. */
  readonly defaults: boolean;
  /** `amount` may be a text. */
  readonly coerces: boolean;
  /** `to` is lower-cased. */
  readonly lowers: boolean;
  /** `nonce` is made anew for each call. */
  readonly freshens: boolean;
  /** `region` takes two texts and no other, so that nobody can try what the schema does without it. */
  readonly isStrict: boolean;
}

export type NormaliserName = 'email' | 'e164' | 'money' | 'trim' | 'nfc' | 'lower';

export type Normalised = 'to' | 'phone' | 'amount' | 'order';

export interface Spelling {
  readonly fields: readonly Field[];
  readonly rules: SchemaRules | undefined;
  readonly normalize: Readonly<Partial<Record<Normalised, NormaliserName>>>;
}

export const constants: Readonly<Partial<Meaning>> = { priority: 'normal', 'customer.tier': 'basic' };

export const derivedPayment = (order: string) => `pay_${order}`;
export const derivedCurrency = (region: string) => (region === 'us' ? 'usd' : 'eur');

type Args = Record<string, unknown>;

/** One of the ways in which a caller may write this down. */
export function spell(chance: Chance, meaning: Meaning, { fields, rules, normalize }: Spelling): Args {
  const args: Args = {};
  const customer: Args = {};
  for (const field of chance.happens(0.5) ? fields : fields.toReversed()) {
    switch (field) {
      case 'order':
        args[rules?.aliases === true && chance.happens(0.4) ? 'order_id' : 'order'] = spellText(
          chance,
          meaning.order,
          normalize.order,
        );
        break;
      case 'payment':
        if (!(rules?.derives && meaning.payment === derivedPayment(meaning.order) && chance.happens(0.75)))
          args.payment = meaning.payment;
        break;
      case 'currency':
        if (!(rules?.derives && meaning.currency === derivedCurrency(meaning.region) && chance.happens(0.75)))
          args.currency = meaning.currency;
        break;
      case 'to':
        args.to = spellText(chance, meaning.to, normalize.to ?? (rules?.lowers ? 'lower' : undefined));
        break;
      case 'phone':
        args.phone = normalize.phone === 'e164' ? chance.pick(phones(meaning.phone)) : meaning.phone;
        break;
      case 'amount':
        args.amount = spellAmount(
          chance,
          meaning.amount,
          normalize.amount === 'money',
          rules?.coerces === true,
        );
        break;
      case 'priority':
        if (!mayOmit(chance, rules, meaning, field)) args.priority = meaning.priority;
        break;
      case 'customer.id':
        customer.id = meaning[field];
        break;
      case 'customer.tier':
        if (!mayOmit(chance, rules, meaning, field)) customer.tier = meaning[field];
        break;
      case 'region':
        args.region = meaning.region;
        break;
    }
  }
  if (Object.keys(customer).length > 0 || fields.includes('customer.tier')) args.customer = customer;
  // What is undefined was not given.
  if (chance.happens(0.1)) args.unused = undefined;
  return args;
}

function mayOmit(chance: Chance, rules: SchemaRules | undefined, meaning: Meaning, field: Field): boolean {
  if (meaning[field] !== constants[field]) return false;
  // Before there was a schema with this default, nobody gave the field at all.
  return rules === undefined || !rules.defaults || chance.happens(0.6);
}

function spellText(chance: Chance, text: string, normaliser: string | undefined): string {
  const cased = chance.happens(0.5) ? text : text.toUpperCase();
  switch (normaliser) {
    case 'email':
      return chance.happens(0.5) ? cased : ` ${cased} `;
    case 'lower':
      return cased;
    case 'trim':
      return chance.happens(0.5) ? text : `  ${text}\t`;
    case 'nfc':
      return chance.happens(0.5) ? text : text.normalize('NFD');
    default:
      return text;
  }
}

const phones = (digits: string) => [
  `+${digits}`,
  `00${digits}`,
  `+${digits.slice(0, 2)} (${digits.slice(2, 4)}) ${digits.slice(4, 8)}-${digits.slice(8)}`,
];

function spellAmount(chance: Chance, amount: number, isMoney: boolean, isCoerced: boolean): unknown {
  if (isMoney) return chance.pick([amount, `${amount}`, `${amount}.0`, `0${amount}.00`, ` ${amount} `]);
  return isCoerced ? chance.pick([amount, `${amount}`]) : amount;
}

const plainly = (value: unknown) => String(value).trim().toLowerCase().normalize('NFC');

/** Back from args, as `run` gets them, to what they mean. */
export function readMeaning(given: unknown): Partial<Meaning> {
  const args = given as Args;
  const customer = (args.customer ?? {}) as Args;
  const all: Record<string, unknown> = {
    order: args.order === undefined ? undefined : plainly(args.order),
    payment: args.payment,
    to: args.to === undefined ? undefined : plainly(args.to),
    phone: args.phone === undefined ? undefined : String(args.phone).replace(/\D/g, '').replace(/^00/, ''),
    amount: args.amount === undefined ? undefined : Number(String(args.amount).trim()),
    region: args.region,
    currency: args.currency,
    priority: args.priority,
    'customer.id': customer.id,
    'customer.tier': customer.tier,
  };
  return all as Partial<Meaning>;
}

/** The intent that these fields make: constant defaults and what was not given count for nothing. */
export function meaningOf(meaning: Partial<Meaning>, identity: readonly Field[]): string {
  return allFields
    .filter((field) => identity.includes(field))
    .filter((field) => meaning[field] !== undefined && meaning[field] !== constants[field])
    .map((field) => `${field}=${meaning[field]}`)
    .join(' ');
}

/** As a library of schemas would: output from input, unknown fields passed on. */
export function schemaOf(rules: SchemaRules, fields: readonly Field[]): StandardSchema {
  const has = (field: Field) => fields.includes(field);
  let nextNonce = 0;
  return {
    '~standard': {
      version: 1,
      vendor: 'sim',
      validate(input) {
        if (typeof input !== 'object' || input === null) return { issues: [{ message: 'is not an object' }] };
        const args: Args = { ...(input as Args) };
        if (rules.aliases && args.order_id !== undefined) {
          args.order ??= args.order_id;
          delete args.order_id;
        }
        if (has('order') && typeof args.order !== 'string') return missing('order');
        if (has('region') && typeof args.region !== 'string') return missing('region');
        if (has('region') && rules.isStrict && !['eu', 'us'].includes(args.region as string))
          return missing('region');
        if (rules.freshens) args.nonce ??= `n${nextNonce++}`;
        if (rules.derives && has('payment')) args.payment ??= derivedPayment(plainly(args.order));
        if (rules.derives && has('currency')) args.currency ??= derivedCurrency(String(args.region));
        if (rules.coerces && has('amount')) args.amount = Number(args.amount);
        if (rules.lowers && typeof args.to === 'string') args.to = args.to.toLowerCase();
        if (rules.defaults && has('priority')) args.priority ??= constants.priority;
        if (has('customer.tier')) {
          if (typeof args.customer !== 'object' || args.customer === null) return missing('customer');
          const customer = { ...(args.customer as Args) };
          if (rules.defaults) customer.tier ??= constants['customer.tier'];
          args.customer = customer;
        }
        return { value: args };
      },
    },
  };
}

const missing = (field: string) => ({ issues: [{ message: 'is missing', path: [field] }] });
