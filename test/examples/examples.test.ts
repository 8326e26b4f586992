// Every program of examples/ runs here, from the sources, and prints what it promises.

import { spawn } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { describe, expect, inject, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { compileCache } from '../processes/node-process.ts';

const folder = join(import.meta.dirname, '../../examples');
const programs = globSync('**/*.ts', { cwd: folder }).filter((name) => name !== 'patterns/story.ts');
const sourceOf = (name: string) => readFileSync(join(folder, name), 'utf8');
/** At the end of a program: what it prints, line by line. */
const promisedBy = (name: string) =>
  [...sourceOf(name).matchAll(/^\/\/ prints: (.*)/gm)].map(([, line]) => line!);

/** What to expect of the programs whose lines have dates, ids or generated text. */
const checks: Readonly<Record<string, (story: string) => void>> = {
  'quick-start.ts'(story) {
    expect(story.match(/ executed$/gm)).toHaveLength(2);
    expect(story.match(/ replayed: nothing was sent again/gm)).toHaveLength(5);
    expect(story).toContain('other wording of reason');
    expect(story.match(/ IN_DOUBT: refund: .* It may have landed/g)).toHaveLength(1);
    expect(whatTheBankSaw(story)).toEqual(['p-1 20', 'p-3 10', 'p-2 30']);
  },
  'nightly-job.ts'(story) {
    const [, first, second, ...rest] =
      /^attempt 1: (.*)\nattempt 2: (.*)\n(.*)\n(.*)\n(.*)\n$/.exec(story) ?? [];
    expect(second).toBe(first);
    expect(rest, story).toEqual(['executed', 'skipped', 'published 1 post']);
  },
  'langchain.ts'(story) {
    const [, failed = '', again = ''] = story.split(/^(?:\d\. .*|What the bank saw)$/m);
    expect(failed.trim()).toBe('the run failed: 503: the model is overloaded');
    expect(again).toContain('the program gets of call_2: {"id":"re_1"}');
    expect(again).toMatch(/Already done on .*; nothing was sent again\. .* your `reason` was not used\./);
    expect(whatTheBankSaw(story)).toEqual(['o-17 4200', 'refunds: 1']);
  },
  'ai-sdk.ts'(story) {
    expect(story).toMatch(/run 1: .* refunds at the bank: 1\n/);
    expect(story).toMatch(/run 3: .* refunds at the bank: 1\n/);
    expect(story).toMatch(/the model was told: Already done; nothing was sent again\./);
  },
  'openai-agents.ts': expectOneRefundOfThree,
  'anthropic.ts': expectOneRefundOfThree,
};

describe.concurrent('examples', () => {
  test.each(programs)('%s', async (name) => {
    const story = await run(name);
    const promised = promisedBy(name);
    if (promised.length > 0) return expect(story.trimEnd().split('\n')).toEqual(promised);
    expect(Object.keys(checks), `${name} promises nothing`).toContain(name);
    checks[name]?.(story);
  });
});

test('examples/README.md lists every program', () => {
  const listed = [...sourceOf('README.md').matchAll(/\]\(([\w/-]+\.ts)\)/g)].map(([, name]) => name!);
  expect(listed.toSorted()).toEqual(programs.toSorted());
});

test('npm run demo tells the story of the quick start', () => {
  expect(manifest.scripts.demo).toBe('node examples/quick-start.ts');
});

async function run(name: string): Promise<string> {
  const preload = pathToFileURL(join(import.meta.dirname, '../docs/semel-from-source.ts'));
  const database = sourceOf(name).includes('DATABASE_URL') ? { DATABASE_URL: await newDatabase(name) } : {};
  const child = spawn(process.execPath, [join(folder, name)], {
    env: {
      ...{ ...process.env, ...database },
      NODE_OPTIONS: `--import=${preload}`,
      NODE_COMPILE_CACHE: compileCache(),
      NODE_NO_WARNINGS: '1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [story, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect(errors).toBe('');
  return story;
}

async function newDatabase(example: string): Promise<string> {
  const name = `example_${example.replaceAll(/\W/g, '_')}_${process.pid}`;
  const admin = new pg.Client(inject('postgresUrl'));
  await admin.connect();
  await admin.query(`CREATE DATABASE ${name}`);
  await admin.end();
  return inject('postgresUrl').replace(/\/[^/?]*(\?|$)/, `/${name}$1`);
}

function expectOneRefundOfThree(story: string): void {
  expect(story.match(/the model reads: .*re_1/g)).toHaveLength(3);
  expect(story.match(/Already done on .* nothing was sent again/g)).toHaveLength(2);
  expect(story.match(/as first worded: your `reason` was not used/g)).toHaveLength(1);
  expect(whatTheBankSaw(story)).toEqual(['o-17 42', 'effects: 1']);
}

function whatTheBankSaw(story: string): string[] {
  const [, bank = ''] = story.split('What the bank saw');
  return bank.trim().split(/\s*\n\s*/);
}
