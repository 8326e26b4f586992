// `semel explain`: the documentation in a terminal, without a network and without a ledger.

import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { errorCodes } from 'semel';
import { describe, expect, test } from 'vitest';
import { allTopics } from '../../src/cli/commands/explain/topics.ts';
import { renderMarkdown } from '../../src/cli/render/markdown.ts';
import { effects } from '../../src/core/contract/words.ts';
import { SemelError } from '../../src/core/errors.ts';
import { toolFields } from '../../src/semel/toolbox.ts';
import { problemKinds } from '../../src/server/exchange/reply.ts';

const main = join(import.meta.dirname, '../../src/cli/main.ts');
const explain = (...words: string[]) =>
  spawnSync(process.execPath, [main, 'explain', ...words], { encoding: 'utf8' });
const namesOf = (kind: string) => allTopics().flatMap((topic) => (topic.kind === kind ? [topic.name] : []));

describe('the topics', () => {
  test('are every error code, effect class, contract field and exit code, and the words that users need', () => {
    expect(namesOf('error').sort()).toEqual([...errorCodes].sort());
    expect(namesOf('effect class')).toEqual(effects);
    expect(namesOf('contract field').sort()).toEqual([...toolFields].sort());
    expect(namesOf('exit code')).toContain('76');
    expect(namesOf('word')).toEqual(expect.arrayContaining(['landed', 'in doubt', 'replay', 'drift']));
    expect(namesOf('finding of semel doctor')).toContain('CLOCK');
    expect(namesOf('event')).toContain('duplicate');
    const titles = Object.values(problemKinds).map(({ title }) => title);
    expect(namesOf('refusal of semel serve')).toEqual(titles);
  });

  test('fit into 80 columns, without markup and link targets', () => {
    const rendered = allTopics().flatMap(({ text }) => renderMarkdown(text, 80));
    expect(rendered.filter((line) => line.length > 80)).toEqual([]);
    expect(rendered.filter((line) => /\]\(|\*\*|^\s*\|/.test(line))).toEqual([]);
  });
});

test('the command that an error names prints what it means and what to do', () => {
  const { docs } = new SemelError('IN_DOUBT', 'It may have landed.');
  const [npx, semel, ...words] = docs.split(' ');
  expect([npx, semel]).toEqual(['npx', 'semel']);
  const page = execFileSync(process.execPath, [main, ...words], { encoding: 'utf8' });
  expect(page).toMatch(/^IN_DOUBT {2}error\n\nIt may have landed\./);
  expect(page).toContain('Do, in this order:\n\n1. ');
});

test.each(['in-doubt', 'in_doubt', 'In Doubt'])('%s is the same topic', (name) => {
  expect(explain(name).stdout).toBe(explain('IN_DOUBT').stdout);
});

test('a name with several meanings shows them all', () => {
  const { stdout } = explain('lease');
  expect(stdout).toMatch(/^lease {2}contract field$/m);
  expect(stdout).toMatch(/^lease {2}word$/m);
});

test('an unknown topic is a wrong usage that says what was meant', () => {
  const near = explain('IN_DUOBT');
  expect([near.status, near.stderr]).toEqual([
    64,
    'semel explain: there is no topic "IN_DUOBT". Did you mean IN_DOUBT?\n',
  ]);
  expect(explain('xyzzy').stderr).toContain('semel explain lists all topics.');
});

test('without a topic it lists them; --json has them for programs', () => {
  expect(explain().stdout).toContain('IN_DOUBT, IN_FLIGHT');
  expect(JSON.parse(explain('--json').stdout)).toHaveLength(allTopics().length);
  expect(JSON.parse(explain('POISON', '--json').stdout)).toMatchObject([
    { name: 'POISON', kind: 'error', page: 'docs/reference/errors.md#poison', text: expect.any(String) },
  ]);
});
