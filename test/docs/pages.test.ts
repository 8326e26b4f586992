// The pages hold what the code has, and nothing that it has not.

import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type AttemptContext, errorCodes, eventNames, type Receipt, retryOf } from 'semel';
import { describe, expect, test } from 'vitest';
import { referencePage } from '../../scripts/cli-docs.ts';
import { effects } from '../../src/core/contract/words.ts';
import type { Answer } from '../../src/ledger/index.ts';
import { callFields } from '../../src/semel/calls/call-identity.ts';
import { semelFields } from '../../src/semel/options.ts';
import { toolFields } from '../../src/semel/toolbox.ts';
import type { EventType } from '../../src/store/store.ts';
import {
  allPages,
  anchorOf,
  firstNames,
  headings,
  links,
  type Page,
  readPage,
  root,
  rows,
  sections,
} from './page.ts';

const sorted = (names: Iterable<string>) => [...new Set(names)].sort();

describe('docs/reference/errors.md', () => {
  const page = readPage('docs/reference/errors.md');

  test('every error code has its heading, and every heading is a code', () => {
    expect(sorted(headings(page, 2))).toEqual(sorted(errorCodes.map((code) => code.toLowerCase())));
  });

  test.each(errorCodes)('%s tells what to do, and who may retry', (code) => {
    const body = sections(page, [code.toLowerCase()]);
    expect(body).toContain(`Who may retry: **${retryOf(code)}**`);
    expect(body).toMatch(/^Do[:,]/m);
  });
});

describe('docs/reference/contracts.md', () => {
  const page = readPage('docs/reference/contracts.md');

  test('every field of a contract has its row, and every row is a field', () => {
    const fieldTables = [
      'What it is',
      'What the intent is',
      'How long it counts',
      'What to do when',
      'What is known of the target',
      'Where the line is, and what is kept',
    ];
    expect(firstNames(page, ...fieldTables).sort()).toEqual([...toolFields].sort());
  });

  test('every member of ctx has its row, and every row is a member', () => {
    expect(firstNames(page, 'What the effect gets').sort()).toEqual(Object.keys(context).sort());
  });
});

test('docs/reference/contracts.md has every option of a call and of createSemel, and every member of a receipt', () => {
  const page = readPage('docs/reference/contracts.md');
  const named = (title: string) =>
    rows(page, title).flatMap(([first]) => [...first!.matchAll(/`(\w+)`/g)].map(([, name]) => name!));
  expect(sorted(named('What a call takes'))).toEqual(sorted(callFields));
  expect(sorted(named('What a caller gets'))).toEqual(sorted(Object.keys(receipt)));
  expect(sorted(named('What createSemel takes'))).toEqual(sorted(semelFields));
});

describe('docs/reference/events.md', () => {
  const page = readPage('docs/reference/events.md');

  test('every event has its row, and every row is an event', () => {
    expect(firstNames(page, 'Events').sort()).toEqual([...eventNames].sort());
  });

  test('every kind of history is named', () => {
    const named = [...sections(page, ['History']).matchAll(/`(\w+)`/g)].map(([, name]) => name!);
    expect(sorted(named)).toEqual(sorted(Object.keys(history)));
  });
});

describe('docs/reference/cli.md', () => {
  const page = readPage('docs/reference/cli.md');
  const help = execFileSync(process.execPath, [join(root, 'src/cli/main.ts'), '--help'], {
    encoding: 'utf8',
  });

  test('the reference is the help of every command (`npm run docs:cli` writes it)', async () => {
    expect(readFileSync(join(root, 'docs/reference/cli.md'), 'utf8')).toBe(await referencePage());
  });

  test('every exit code of the help is there, and the other way round', () => {
    const [, lines = ''] = /Exit codes: (.*)/s.exec(help) ?? [];
    const listed = [...lines.matchAll(/\b(\d+)\b/g)].map(([, code]) => code!);
    const codes = rows(page, 'Exit codes').slice(1);
    expect(codes.map(([code]) => code)).toEqual(listed);
  });

  test('every exit code means there what it means in the help', () => {
    const [, lines = ''] = /Exit codes: (.*?);/s.exec(help) ?? [];
    const inHelp = [...lines.replaceAll(/\s+/g, ' ').matchAll(/(\d+) ([^,]*)/g)].map(
      ([, code, meaning]) => [code!, meaning!] as const,
    );
    const inPage = new Map(rows(page, 'Exit codes').map(([code, meaning]) => [code!, meaning!]));
    const words = (text: string) =>
      text
        .replaceAll(/[`()]/g, '')
        .split(/[\s,:;]+/)
        .filter((word) => /^\w{4,}$/.test(word));
    const different = inHelp.flatMap(([code, meaning]) => {
      const missing = words(meaning).filter((word) => !inPage.get(code)?.includes(word));
      return missing.length === 0 ? [] : [`${code} ${meaning}: the page does not say ${missing.join(', ')}`];
    });
    expect(inHelp.length).toBeGreaterThan(8);
    expect(different).toEqual([]);
  });
});

describe('docs/internals/glossary.md', () => {
  const table = rows(readPage('docs/internals/glossary.md')).filter(([word]) => word !== 'word');
  const defined = table.map(([word]) => word!.replaceAll('*', ''));

  test('no word has two rows', () => {
    expect(defined).toEqual([...new Set(defined)]);
  });

  test('every word that the code has for a record and for a verdict is defined', () => {
    const { gone: _forWaitersOnly, ...kinds } = verdicts;
    const statuses = ['running', 'succeeded', 'failed', 'released', 'unknown'];
    const derived = ['lapsed', 'in doubt', 'free', 'dispatched', 'settled', 'abandoned'];
    const missing = [...statuses, ...derived, ...Object.keys(kinds)].filter(
      (word) => !defined.includes(word),
    );
    expect(missing).toEqual([]);
    const classes = table.find(([word]) => word === '**effect class**')?.[1] ?? '';
    expect(effects.filter((effect) => !classes.includes(`\`${effect}\``))).toEqual([]);
  });

  test('every word in bold inside a definition has a row of its own', () => {
    const bold = table.flatMap(([, meaning]) =>
      [...meaning!.matchAll(/\*\*([^*]+)\*\*/g)].map(([, word]) => word!),
    );
    expect(bold.filter((word) => !defined.includes(word))).toEqual([]);
  });
});

describe("our own words on users' pages", () => {
  const glossary = readPage('docs/internals/glossary.md');
  const [, list = ''] = /^Our own words.*?: ([^.]+)\./ms.exec(glossary.text) ?? [];
  // The longest first: "in doubt" is not "doubt" as well.
  const own = list.split(/,\s+/).sort((one, other) => other.length - one.length);

  test('are words of the glossary', () => {
    const defined = rows(glossary).map(([word]) => word!.replaceAll('*', ''));
    expect(own.length).toBeGreaterThan(20);
    expect(own.filter((word) => !defined.includes(word))).toEqual([]);
  });

  // Per page, since a reader comes to one page with one question; nobody reads all of them.
  const pages = allPages().filter(({ path }) => /^(README\.md|docs\/(start|guides)\/)/.test(path));
  test.each(pages)('are at most twelve in $path', ({ prose }) => {
    let rest = prose.toLowerCase();
    const used = own.filter((word) => {
      const left = rest.replaceAll(new RegExp(`\\b${word}(s|ed|d)?\\b`, 'g'), ' ');
      const isUsed = left !== rest;
      rest = left;
      return isUsed;
    });
    expect(used.length, used.join(', ')).toBeLessThanOrEqual(12);
  });
});

describe('links between pages', () => {
  test.each(allPages())('$path leads nowhere else than to files and headings that exist', (page) => {
    const broken = links(page).filter((link) => {
      if (/^[a-z]+:/.test(link)) return false;
      const [file = '', anchor] = link.split('#');
      const path = file === '' ? page.path : join(dirname(page.path), file);
      if (!existsSync(join(root, path))) return true;
      return anchor !== undefined && !headings(readPage(path)).map(anchorOf).includes(anchor);
    });
    expect(broken).toEqual([]);
  });

  test('the index names every page of docs, and the pages of decisions and evidence are listed in their folders', () => {
    const linkedFrom = (path: string) =>
      links(readPage(path)).map((link) => join(dirname(path), link.split('#')[0]!));
    const lists = [
      'docs/README.md',
      'docs/internals/decisions/README.md',
      'docs/internals/evidence/README.md',
    ];
    const named = new Set(lists.flatMap(linkedFrom));
    const pages = globSync('docs/**/*.md', { cwd: root }).filter((path) => path !== lists[0]);
    expect(pages.filter((path) => !named.has(path))).toEqual([]);
    expect(linkedFrom('README.md')).toContain(lists[0]);
  });

  const forUsers = allPages().filter(
    ({ path }) => path.startsWith('docs/') && !/\/(decisions|evidence)\//.test(path),
  );

  test.each(forUsers)('$path says in its first line who needs it', ({ text }) => {
    expect(text).toMatch(/^# .+\n\n(?:For |You )/);
  });
});

test('no program on a page says `using`, which Node.js 22 cannot read', () => {
  const said = [...allPages(), readPage('skills/semel/SKILL.md')].filter(({ text }) =>
    /^ *(await )?using /m.test(text),
  );
  expect(said.map(({ path }) => path)).toEqual([]);
});

test('ARCHITECTURE.md shows every folder of src, and none that is not there', () => {
  const { text } = readPage('ARCHITECTURE.md');
  const tree = /^src\/\n([\s\S]*?)^test\//m.exec(text)?.[1] ?? '';
  const shown = [...tree.matchAll(/^ {2}(\w+)\//gm)].map(([, name]) => name!);
  const folders = globSync('*/', { cwd: join(root, 'src') }).map((name) => name.replace(/\/$/, ''));
  expect(sorted(shown)).toEqual(sorted(folders));
  const named = [...text.matchAll(/`(src\/[\w./-]+\.ts)`/g)].map(([, path]) => path!);
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test('a bare file name in ARCHITECTURE.md is next to the last path before it in its row', () => {
  const table = readPage('ARCHITECTURE.md').text.split('## Where each thing lives')[1] ?? '';
  const missing = table.split('\n').flatMap((row) => {
    let folder = '.';
    return [...row.matchAll(/`([\w./-]+\.(?:ts|json))`/g)].flatMap(([, path]) => {
      if (/^(?:src|dashboard|test|clients)\//.test(path!)) folder = dirname(path!);
      return existsSync(join(root, folder, basename(path!))) ? [] : [path!];
    });
  });
  expect(missing).toEqual([]);
});

test('decisions have rising numbers, the same by file and by title', () => {
  const files = globSync('docs/internals/decisions/0*.md', { cwd: root }).sort();
  const numbers = files.map((file) => Number(/\/(\d{3})-/.exec(file)?.[1]));
  expect(sorted(numbers.map(String)).length).toBe(files.length);
  expect(files.map((file) => Number.parseInt(headings(readPage(file), 1)[0]!, 10))).toEqual(numbers);
});

test('the first screen of the README says what it is for, and has a command with what it prints', () => {
  const { text } = readPage('README.md');
  const screen = text.split('\n').slice(0, 30).join('\n');
  expect(screen).toContain('npx semel demo');
  expect(screen).toContain('with semel');
  for (const line of ['npm ci && npm run demo', 'npm ci && npm run verify']) expect(text).toContain(line);
});

test('the README compares the same tools as docs/start/compare.md', () => {
  const firstCells = (page: Page, ...under: string[]) =>
    rows(page, ...under).map(([tool]) => tool!.replaceAll('*', ''));
  const shown = firstCells(readPage('README.md'), 'How it compares');
  const compared = firstCells(readPage('docs/start/compare.md')).slice(1);
  const missing = compared.filter((tool) => !shown.some((name) => tool.startsWith(name.replace('AWS ', ''))));
  expect(missing).toEqual(["A provider's own key"]);
});

test('docs/start/compare.md has a source for each claim, except that a tool does not have something', () => {
  const cells = rows(readPage('docs/start/compare.md'))
    .slice(1)
    .flatMap(([tool, ...rest]) => rest.map((cell) => `${tool}: ${cell}`));
  const bare = cells.filter((cell) => !cell.includes(']('));
  expect(bare.filter((cell) => !/: (no|not documented|it is the target)$/.test(cell))).toEqual([]);
});

// The compiler sees to it that these lists have every name, and no other.

const context: Record<keyof AttemptContext, true> = {
  key: true,
  keyFor: true,
  mark: true,
  fetch: true,
  fence: true,
  attempt: true,
  signal: true,
  dispatch: true,
  note: true,
  step: true,
  prepared: true,
  tx: true,
};

const receipt: Record<keyof Receipt, true> = {
  contract: true,
  key: true,
  id: true,
  fence: true,
  generation: true,
  attempt: true,
  executed: true,
  replayed: true,
  skipped: true,
  settledAt: true,
  drift: true,
  remoteRef: true,
  omitted: true,
  unguarded: true,
  acceptedRepeat: true,
  uncommitted: true,
  weak: true,
  observed: true,
};

const history: Record<EventType, true> = {
  takeover: true,
  fenced: true,
  lateNews: true,
  duplicate: true,
  contradiction: true,
  cleared: true,
  resolved: true,
  poisoned: true,
  replayed: true,
  conflict: true,
  observed: true,
  noted: true,
};

const verdicts: Record<Answer['is'], true> = {
  execute: true,
  replay: true,
  busy: true,
  'in doubt': true,
  conflict: true,
  foreign: true,
  gone: true,
};
