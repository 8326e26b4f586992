// Which args are identity, content or volatile, and how they are compared: the lists of a contract, checked.

import { looksFresh, looksReworded } from '../key/changing-names.ts';
import type { Normaliser } from '../key/identity.ts';
import { isBlank } from '../plain.ts';
import { list, refuse } from './contract-checks.ts';
import { type Effect, isRepeatable } from './words.ts';

/** The lists as an author writes them. */
export interface FieldNames {
  readonly identity?: readonly string[];
  readonly content?: readonly string[];
  readonly volatile?: readonly string[];
}

export interface FieldLists {
  readonly identity: readonly string[] | undefined;
  readonly content: readonly string[];
  readonly volatile: readonly string[];
}

interface StrictDefinition extends FieldNames {
  readonly name: string;
  readonly effect: Effect;
  readonly strict?: readonly string[];
  readonly redact?: readonly string[];
}

export function checkFields(
  name: string,
  { identity, content = [], volatile = [] }: FieldNames,
  as = 'volatile',
): FieldLists {
  const lists = { identity: identity ?? [], content, [as]: volatile };
  const seenIn = new Map<string, string>();
  for (const [list, paths] of Object.entries(lists)) {
    if (!Array.isArray(paths))
      refuse(list, `${name}: \`${list}\` must be a list of field paths.`, `Write ${list}: ['field'].`);
    for (const path of paths) {
      if (typeof path !== 'string' || isBlank(path))
        refuse(list, `${name}: \`${list}\` contains something other than field paths.`, 'List field names.');
      const other = seenIn.get(path);
      if (other !== undefined) {
        refuse(
          list,
          `${name}: ${JSON.stringify(path)} is in \`${other}\` and in \`${list}\`.`,
          'A field is one of identity, content, volatile.',
        );
      }
      seenIn.set(path, list);
    }
  }
  if (identity !== undefined && identity.length === 0) {
    refuse(
      'identity',
      `${name}: without an identity field, all calls would be the same intent.`,
      'Name at least one field, or leave `identity` out.',
    );
  }
  return { identity, content, volatile };
}

/** What is strict is content, so it need not be listed twice. */
export function withStrict(form: FieldNames, strict: readonly string[]): FieldNames {
  if (strict.length === 0 || form.identity !== undefined) return form;
  return { ...form, content: [...new Set([...(form.content ?? []), ...strict])] };
}

export function checkStrict(definition: StrictDefinition): readonly string[] {
  const { name, effect, identity, volatile = [], redact = [] } = definition;
  const paths = list(name, 'strict', definition.strict);
  if (paths.length > 0 && isRepeatable(effect))
    refuse('strict', `${name}: a ${effect} always runs, so nothing can conflict.`, 'Leave `strict` out.');
  for (const path of checkFields(name, { volatile: paths }, 'strict').volatile) {
    const other = Object.entries({ identity: identity ?? [], volatile }).find(([, each]) =>
      each.includes(path),
    );
    // What is redacted leaves no digest, so that a difference in it, or around it, could not be seen.
    const isHidden = redact.some((each) => isPartOf(each, path) || isPartOf(path, each));
    if (other !== undefined || isHidden)
      refuse(
        'strict',
        `${name}: ${JSON.stringify(path)} is in \`${other?.[0] ?? 'redact'}\` and in \`strict\`.`,
        'Strict fields are content that is stored as a digest: leave it out of one of them.',
      );
    // With `identity`, the rest is compared field by field, not deeper.
    if (identity !== undefined && path.includes('.'))
      refuse(
        'strict',
        `${name}: \`strict\` takes whole fields when \`identity\` is set; ${JSON.stringify(path)} is nested.`,
        `Name the whole field: strict: ['${path.split('.', 1)[0]}'].`,
      );
  }
  return paths;
}

/** The same field, or one inside it. */
export function isPartOf(path: string, whole: string): boolean {
  return path === whole || path.startsWith(`${whole}.`);
}

export function checkNormalisers(
  name: string,
  normalize: Readonly<Record<string, Normaliser | undefined>>,
): Record<string, Normaliser> {
  const checked: Record<string, Normaliser> = Object.create(null);
  for (const [path, normaliser] of Object.entries(normalize)) {
    if (normaliser === undefined) continue;
    if (typeof normaliser !== 'function' && !normaliserNames.includes(normaliser)) {
      refuse(
        `normalize.${path}`,
        `${name}: ${JSON.stringify(normaliser)} is not a normaliser.`,
        `Use one of ${normaliserNames.join(', ')}, or a function.`,
      );
    }
    checked[path] = normaliser;
  }
  return checked;
}

const normaliserNames: readonly string[] = ['email', 'e164', 'money', 'trim', 'nfc', 'lower'];

/** Identity fields whose names suggest that they change between retries: the usual cause of a second effect. */
export function suspiciousFields({ identity }: FieldLists, seen: readonly string[]): readonly string[] {
  return (identity ?? seen).filter((path) => {
    const name = path.slice(path.lastIndexOf('.') + 1);
    return looksReworded(name) || looksFresh(name);
  });
}
