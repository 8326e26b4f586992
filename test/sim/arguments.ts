// Which args a tool takes, which of them make the intent, how its author says so, and what its schema does to them.

import type { ContractDefinition } from '../../src/core/contract/contract.ts';
import type { Chance } from './chance.ts';
import {
  allFields,
  type Field,
  type Normalised,
  type NormaliserName,
  type SchemaRules,
  type Spelling,
} from './fields.ts';

export interface Words extends Spelling {
  readonly identity: readonly Field[];
  readonly lists: Pick<ContractDefinition, 'identity' | 'content' | 'volatile' | 'normalize'>;
  readonly extras: readonly ('note' | 'trace')[];
}

/** Which args the tool takes, which of them make the intent, and how its author says so. */
export function makeWords(chance: Chance): Words {
  const some = allFields.filter((field) => field !== 'order' && chance.happens(0.3));
  const fields = allFields.filter(
    (field) => field === 'order' || some.includes(field) || (field === 'region' && some.includes('currency')),
  );
  const rules: SchemaRules | undefined = chance.happens(0.5)
    ? {
        aliases: chance.happens(0.5),
        derives: chance.happens(0.6),
        defaults: chance.happens(0.6),
        coerces: chance.happens(0.5),
        lowers: chance.happens(0.5),
        freshens: chance.happens(0.1),
        isStrict: chance.happens(0.2),
      }
    : undefined;
  const normalize = makeNormalisers(chance, fields, rules);
  const style = chance.pick(['identity', 'identity', 'others', 'all'] as const);
  const extras = style === 'all' ? [] : (['note', 'trace'] as const).filter(() => chance.happens(0.7));
  if (style === 'identity') {
    // Not always with `order`: what is derived from it must count for it.
    const isDerived = rules?.derives === true && fields.includes('payment') && chance.happens(0.5);
    const anchor: Field = isDerived ? 'payment' : 'order';
    const identity = fields.filter((field) => field === anchor || (field !== 'order' && chance.happens(0.5)));
    const volatile = extras.filter((extra) => extra === 'trace' && chance.happens(0.7));
    return {
      fields,
      rules,
      normalize: within(normalize, identity),
      identity,
      extras,
      lists: { identity, volatile, normalize: within(normalize, identity) },
    };
  }
  const content = extras.filter((extra) => extra === 'note');
  const volatile = extras.filter((extra) => extra === 'trace');
  const reworded =
    style === 'others' ? fields.filter((field) => field !== 'order' && chance.happens(0.2)) : [];
  const identity = fields.filter((field) => !reworded.includes(field));
  const lists = style === 'all' ? {} : { content: [...content, ...reworded], volatile };
  return {
    fields,
    rules,
    normalize: within(normalize, identity),
    identity,
    extras,
    lists: { ...lists, normalize: within(normalize, identity) },
  };
}

function makeNormalisers(
  chance: Chance,
  fields: readonly Field[],
  rules: SchemaRules | undefined,
): Spelling['normalize'] {
  const chosen: Partial<Record<Normalised, NormaliserName>> = {};
  if (fields.includes('to') && chance.happens(0.5)) chosen.to = chance.pick(['email', 'lower', 'trim']);
  if (fields.includes('phone') && chance.happens(0.5)) chosen.phone = 'e164';
  if (fields.includes('amount') && rules?.coerces !== true && chance.happens(0.5)) chosen.amount = 'money';
  if (chance.happens(0.3)) chosen.order = chance.pick(['lower', 'trim', 'nfc']);
  return chosen;
}

/** A field that is not identity is written in one way: what it says goes to the target as it is. */
function within(normalize: Spelling['normalize'], identity: readonly Field[]): Spelling['normalize'] {
  return Object.fromEntries(Object.entries(normalize).filter(([field]) => identity.includes(field as Field)));
}
