// What callers want: one intent each, and the words in which a call asks for it. Two wishes differ in one thing only, so
// that a key which forgets that thing makes them one.

import type { CallOptions } from '../../src/semel/definition.ts';
import type { Asked } from './callers.ts';
import type { Chance } from './chance.ts';
import type { Version } from './contracts.ts';
import {
  derivedCurrency,
  derivedPayment,
  type Field,
  type Meaning,
  meaningOf,
  type SchemaRules,
  spell,
} from './fields.ts';
import { isCalendar, type Period, slotAt } from './periods.ts';
import { epoch } from './store-time.ts';

export interface Wish {
  readonly meaning: Meaning;
  readonly conversation: string;
  readonly turn: string;
  readonly run: string;
  /** An instant of the slot that it stands for; undefined: whatever slot it is when the call is made. */
  readonly at: number | undefined;
  /** Why it is done once more on purpose. */
  readonly again: string | undefined;
}

export interface WishOptions {
  readonly identity: readonly Field[];
  readonly rules: SchemaRules | undefined;
  readonly period: Period;
  readonly callerKey: string | undefined;
  /** Versions of the tool bound their intents differently: then only args tell two intents apart. */
  readonly isScopeFixed: boolean;
}

export function makeWishes(chance: Chance, options: WishOptions): readonly Wish[] {
  const first: Wish = {
    meaning: {
      order: 'o1ö',
      payment: options.rules?.derives ? derivedPayment('o1ö') : 'pay_1',
      to: 'ann@example.com',
      phone: '442079460958',
      amount: 20,
      region: 'eu',
      currency: 'eur',
      priority: 'normal',
      'customer.id': 'k1',
      'customer.tier': 'basic',
    },
    conversation: 'c1',
    turn: 't1',
    run: 'r1',
    at: chance.happens(0.8) ? epoch + chance.between(-3 * 86_400_000, 3 * 86_400_000) : undefined,
    again: undefined,
  };
  const count = options.callerKey === undefined ? chance.pick([1, 1, 1, 2, 2, 3]) : 2;
  const wishes = [first];
  while (wishes.length < count) {
    const other = otherThan(chance, first, options);
    if (wishes.every((wish) => !isSame(wish, other, options))) wishes.push(other);
  }
  return wishes;
}

const isSame = (a: Wish, b: Wish, { identity, period }: WishOptions) =>
  meaningOf(a.meaning, identity) === meaningOf(b.meaning, identity) &&
  scopeOf(a, period, epoch) === scopeOf(b, period, epoch);

/** Differs in one identity field, or in what bounds the intent. */
function otherThan(
  chance: Chance,
  wish: Wish,
  { identity, rules, period, callerKey, isScopeFixed }: WishOptions,
): Wish {
  const mayBeElsewhere = !isScopeFixed && callerKey === undefined && wish.at !== undefined;
  if (mayBeElsewhere && chance.happens(0.35)) {
    if (chance.happens(0.2)) return { ...wish, again: 'once more' };
    switch (period.kind) {
      case 'ever':
      case 'ttl':
        break;
      case 'turn':
        return chance.happens(0.5) ? { ...wish, turn: 't2' } : { ...wish, conversation: 'c2' };
      case 'conversation':
        return { ...wish, conversation: 'c2' };
      case 'run':
        return { ...wish, run: 'r2' };
      default: {
        const { startsAt, endsAt } = slotAt(period, wish.at as number);
        return { ...wish, at: chance.happens(0.5) ? startsAt - 1 : endsAt };
      }
    }
  }
  return { ...wish, meaning: changed(chance, wish.meaning, chance.pick(identity), rules) };
}

function changed(chance: Chance, meaning: Meaning, field: Field, rules: SchemaRules | undefined): Meaning {
  const nth = chance.between(2, 4);
  switch (field) {
    case 'order': {
      const order = `o${nth}ö`;
      return rules?.derives ? { ...meaning, order, payment: derivedPayment(order) } : { ...meaning, order };
    }
    case 'payment':
      if (rules?.derives && chance.happens(0.8)) return changed(chance, meaning, 'order', rules);
      return { ...meaning, payment: `pay_special${nth}` };
    case 'region':
    case 'currency':
      if (field === 'region' || rules?.derives)
        return { ...meaning, region: 'us', currency: derivedCurrency('us') };
      return { ...meaning, currency: 'usd' };
    case 'to':
      return { ...meaning, to: `bob${nth}@example.com` };
    case 'phone':
      return { ...meaning, phone: `44207946095${nth}` };
    case 'amount':
      return { ...meaning, amount: 20 * nth };
    case 'priority':
      return { ...meaning, priority: 'high' };
    case 'customer.id':
      return { ...meaning, 'customer.id': `k${nth}` };
    case 'customer.tier':
      return { ...meaning, 'customer.tier': 'gold' };
  }
}

/** What bounds the intent of a call, by the simulator's own reckoning. */
export function scopeOf(
  wish: Pick<Wish, 'conversation' | 'turn' | 'run' | 'at' | 'again'>,
  period: Period,
  now: number,
): string {
  const again = wish.again === undefined ? '' : ` again ${wish.again}`;
  switch (period.kind) {
    // A TTL bounds nothing: it says when the next one may begin.
    case 'ever':
    case 'ttl':
      return `ever${again}`;
    case 'turn':
      return `${wish.conversation} ${wish.turn}${again}`;
    case 'conversation':
      return `${wish.conversation}${again}`;
    case 'run':
      return `${wish.run}${again}`;
    default:
      return `${slotAt(period, wish.at ?? now).name}${again}`;
  }
}

/** One intent, as a text. */
export const identityOf = (scope: string, meaning: string): string => `${scope}: ${meaning}`;

export interface Asking {
  readonly args: Record<string, unknown>;
  readonly options: CallOptions;
}

/** One of the ways to ask for it, as a caller of this version of the tool may. */
export function wordsOf(
  chance: Chance,
  { wish, plan: { period, callerKey }, caller }: Asked,
  { spelling, extras }: Version,
  call: string,
): Asking {
  const args = spell(chance, wish.meaning, spelling);
  if (extras.includes('note')) args.note = chance.happens(0.6) ? 'hello' : `hello, ${call}`;
  if (extras.includes('trace')) args.trace = `trace of ${call}`;
  return {
    args,
    options: {
      conversation: wish.conversation,
      turn: wish.turn,
      run: wish.run,
      ...(wish.at === undefined || !isCalendar(period) ? {} : { at: instantIn(chance, period, wish.at) }),
      ...(wish.again === undefined ? {} : { again: wish.again }),
      ...(callerKey === undefined ? {} : { key: callerKey }),
      ...(caller === undefined ? {} : { caller }),
    },
  };
}

/** Any instant of the same slot stands for it. */
function instantIn(chance: Chance, period: Period, at: number): number {
  const { startsAt, endsAt } = slotAt(period, at);
  return chance.pick([at, startsAt, endsAt - 1]);
}
