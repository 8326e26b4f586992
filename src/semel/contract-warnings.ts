// Warns once of contracts and args that look like a mistake. Never refuses anything.

import { mayHaveArrived } from '../core/contract/classify.ts';
import type { Contract } from '../core/contract/contract.ts';
import { suspiciousFields } from '../core/contract/fields.ts';
import type { ContractPer } from '../core/contract/period.ts';
import { isRepeatable } from '../core/contract/words.ts';
import { findMissingPaths, suggestPath } from '../core/key/identity.ts';
import type { ClassifyTable } from './definition.ts';

export interface ContractWarnings {
  /** What looks wrong with the identity of such calls. */
  ofIdentity(contract: Contract, args: unknown): void;
  /** What the terms say about each other, whatever the args are. */
  ofTerms(contract: Contract): void;
  ofClassify(name: string, table: ClassifyTable): void;
  forget(name: string): void;
}

export function createContractWarnings(warnOnce: (message: string) => void): ContractWarnings {
  const fields = new Map<string, Set<string>>();
  /** The names of the args of each tool's last call. */
  const judged = new Map<string, readonly string[]>();

  return {
    ofIdentity,
    ofTerms,
    ofClassify,
    forget(name) {
      fields.delete(name);
      judged.delete(name);
    },
  };

  function ofIdentity(contract: Contract, args: unknown): void {
    if (isJudged(contract, args)) return;
    ofPaths(contract, args);
    // Named fields were checked when the tool was defined.
    if (isRepeatable(contract.effect) || (contract.fields.identity !== undefined && args !== undefined))
      return;
    const seen = typeof args === 'object' && args !== null ? unseenFields(contract.name, args) : noFields;
    if (seen.length === 0 && contract.fields.identity === undefined) return;
    const named = new Set([...contract.fields.content, ...contract.fields.volatile]);
    for (const field of suspiciousFields(contract.fields, seen).filter((each) => !named.has(each))) {
      warnOnce(
        `${contract.name}: \`${field}\` is part of the identity. If it may be worded differently for the same intent, name it in \`content\`; if it is fresh each time, in \`volatile\`.`,
      );
    }
  }

  function ofPaths({ name, fields: { identity }, redact }: Contract, args: unknown): void {
    if (identity !== undefined) {
      for (const path of findMissingPaths(args, identity)) {
        warnOnce(
          `${name}: the identity field \`${path}\` is not in the args, so calls that differ in it alone are one. If it is optional, nothing is wrong.`,
        );
      }
    }
    if (redact.length === 0) return;
    for (const path of findMissingPaths(args, redact)) {
      const meant = suggestPath(args, path);
      if (meant === undefined || redact.includes(meant)) continue;
      warnOnce(`${name}: \`redact\` names \`${path}\`, but the args have \`${meant}\`, which is stored.`);
    }
  }

  /** What the terms say about each other, whatever the args are. */
  function ofTerms({ name, effect, per, redact, fields: { identity, content, volatile } }: Contract): void {
    if (isRepeatable(effect)) return;
    if (looksLikeSetter(name))
      warnOnce(
        `${name} looks as if it sets a value. Within one ${periodWord(per)} an equal call counts as a retry: on, off, on runs as on, off. If it sets a value, its effect is \`write-idempotent\`.`,
      );
    const isWithin = (path: string, list: readonly string[]) =>
      list.some((each) => `${path}.`.startsWith(`${each}.`));
    for (const path of redact)
      if (identity === undefined ? !isWithin(path, [...content, ...volatile]) : isWithin(path, identity))
        warnOnce(
          `${name}: \`${path}\` is never stored, but it is part of the identity, so the key holds a digest of it. A value that can be guessed, such as a card number, can be found by trying. Name it in \`content\` or \`volatile\`, or pass a keyed digest of it.`,
        );
  }

  /** Such an entry doubles an effect whenever only the answer was lost. */
  function ofClassify(name: string, table: ClassifyTable): void {
    for (const [code, meaning] of Object.entries(table))
      if (meaning !== 'maybeLanded' && mayHaveArrived(code))
        warnOnce(
          `${name}: \`classify\` takes ${code} for "${meaning === 'rejected' ? 'refused' : 'not landed'}", but a request may have arrived although ${code} came back: a retry can double it. Leave it out, or write ${code}: 'maybeLanded'.`,
        );
  }

  /** All that is warned of shows in the names of the args: those of the last call were judged then. */
  function isJudged({ name, fields: { identity }, redact }: Contract, args: unknown): boolean {
    if (typeof args !== 'object' || args === null || Array.isArray(args)) return false;
    const last = judged.get(name);
    if (last !== undefined && hasNames(args, last)) return true;
    // A dotted path leads into the args, and a redacted one into the items of lists: more than the names counts.
    if (redact.length === 0 && identity?.some((path) => path.includes('.')) !== true)
      judged.set(name, Object.keys(args));
    return false;
  }

  /** Fields that no call of this tool had before: the others were judged then. */
  function unseenFields(name: string, args: object): readonly string[] {
    let known = fields.get(name);
    if (known === undefined) {
      known = new Set();
      fields.set(name, known);
    }
    let unseen: string[] | undefined;
    for (const field of Object.keys(args)) {
      if (known.has(field) || known.size >= maxFields) continue;
      known.add(field);
      unseen ??= [];
      unseen.push(field);
    }
    return unseen ?? noFields;
  }
}

function periodWord(per: ContractPer): string {
  if (typeof per === 'object') return per.unit;
  if (typeof per === 'number') return 'window';
  return per === 'ever' ? 'window' : per;
}

/** In this order: another order costs no more than being judged again. */
function hasNames(args: object, names: readonly string[]): boolean {
  let at = 0;
  for (const name in args) {
    if (names[at] !== name || !Object.hasOwn(args, name)) return false;
    at += 1;
  }
  return at === names.length;
}

/** Args with more names than this are a table, not a call. */
const maxFields = 200;
const noFields: readonly string[] = [];

/** The name suggests that it sets a value. A repeat within one period is then not a retry: on, off, on would run on, off. */
function looksLikeSetter(name: string): boolean {
  const words = name.split(/[._-]|(?<=[a-z])(?=[A-Z])/);
  return words.some((word) =>
    /^(set|update|enable|disable|edit|rename|replace|upsert|patch|put|switch)$/i.test(word),
  );
}
