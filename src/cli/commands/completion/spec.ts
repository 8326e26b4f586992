// What can be completed where, from the definitions of the commands.

import type { Command, Flag } from '../../command.ts';

/** Words from the ledger, read when they are needed. */
export const ledgerWords = ['contracts', 'records', 'refs', 'namespaces'] as const;
export type LedgerWords = (typeof ledgerWords)[number];

export type Kind =
  | { readonly type: 'choices'; readonly choices: readonly string[] }
  | { readonly type: 'ledger'; readonly words: LedgerWords }
  | { readonly type: 'file' | 'store' | 'free' };

export interface FlagSpec {
  readonly name: string;
  readonly short: string | undefined;
  readonly help: string;
  /** Undefined if it takes no value. */
  readonly value: Kind | undefined;
}

export interface CommandSpec {
  readonly name: string;
  readonly line: string;
  readonly flags: readonly FlagSpec[];
  readonly positionals: readonly Kind[];
}

export function specOf({ name, takes, flags }: Command, line: string): CommandSpec {
  return {
    name,
    line,
    flags: Object.entries(flags).map(([flag, definition]) => ({
      name: flag,
      short: definition.short,
      help: definition.help,
      value: definition.type === 'boolean' ? undefined : kindOfFlag(flag, definition),
    })),
    positionals: positionalsOf(takes),
  };
}

const ofFlags: Readonly<Record<string, Kind>> = {
  store: { type: 'store' },
  namespace: { type: 'ledger', words: 'namespaces' },
  tool: { type: 'ledger', words: 'contracts' },
  contract: { type: 'ledger', words: 'contracts' },
};

function kindOfFlag(name: string, { choices, value = '' }: Flag): Kind {
  if (choices !== undefined) return { type: 'choices', choices };
  return ofFlags[name] ?? (isFile(value) ? { type: 'file' } : { type: 'free' });
}

function isFile(shown: string): boolean {
  return /\b(file|path|folder)s?\b/.test(shown);
}

/** From `<id@fence> <verdict> [-m note] [options] -- <command>`: everything before `--`, without the options. */
export function positionalsOf(takes: string): readonly Kind[] {
  const [own = ''] = takes.split(/(?:^|\s)--(?:\s|$)/);
  return own
    .replaceAll(/\[(-[^\]]*|options)\]/g, '')
    .split(/\s+/)
    .filter((word) => word !== '' && !word.startsWith('-'))
    .map((word) => word.replaceAll(/^\[|\]$|…$|\.\.\.$/g, ''))
    .map(kindOfValue);
}

function kindOfValue(shown: string): Kind {
  if (/^[\w-]+(\|[\w-]+)+$/.test(shown)) return { type: 'choices', choices: shown.split('|') };
  if (/^<id@fence>/.test(shown)) return { type: 'ledger', words: 'refs' };
  if (/^<(id|record|key-or-id|id-or-key)\b/.test(shown)) return { type: 'ledger', words: 'records' };
  if (/^<contract>/.test(shown)) return { type: 'ledger', words: 'contracts' };
  return isFile(shown) ? { type: 'file' } : { type: 'free' };
}
