// The compiler's text for the most common mistakes in a contract: people read it before anything of ours runs.

import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const folder = join(root, '.cache', `type-errors-${process.pid}`);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = 'run: ({ id }: { id: string }) => id';
const schema = 'input: z.object({ id: z.string() })';
const mistakes = {
  noPer: `{ name: 'mail', effect: 'irreversible', ${run} }`,
  noPerWithSchema: `{ name: 'mail', effect: 'irreversible', ${schema}, run: ({ id }) => id }`,
  unknownEffect: `{ name: 'mail', effect: 'write', per: 'ever', ${run} }`,
  unknownIdentity: `{ name: 'mail', effect: 'irreversible', per: 'ever', identity: ['ID'], ${run} }`,
  otherArgs: `{ name: 'mail', effect: 'irreversible', per: 'ever', ${schema}, run: (args: { id: number }) => args.id }`,
  misspelt: `{ name: 'mail', effect: 'irreversible', per: 'ever', identty: ['id'], ${run} }`,
};

/** Each mistake is one line of a program; the compiler's complaints by line. One run for all: starting it takes longest. */
function complain(): Record<keyof typeof mistakes, readonly string[][]> {
  mkdirSync(folder, { recursive: true });
  const head = ["import { createSemel } from 'semel';", "import * as z from 'zod';", 'void z;'];
  const names = Object.keys(mistakes) as (keyof typeof mistakes)[];
  const lines = names.map((name) => `createSemel().tool(${mistakes[name]});`);
  writeFileSync(join(folder, 'mistakes.ts'), [...head, ...lines].join('\n'));
  const config = { extends: '../../tsconfig.json', include: ['mistakes.ts'] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  const { stdout } = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', folder, '--pretty', 'false'], {
    encoding: 'utf8',
    cwd: folder,
  });
  const found = Object.fromEntries(names.map((name) => [name, [] as string[][]]));
  let last: string[] | undefined;
  for (const line of stdout.trimEnd().split('\n')) {
    const [, at, column, text] = /^mistakes\.ts\((\d+),(\d+)\): error TS\d+: (.*)$/.exec(line) ?? [];
    if (text === undefined) last?.push(line.trim());
    else {
      const source = [...head, ...lines][Number(at) - 1]!.slice(Number(column) - 1);
      last = [`at ${/^'?\w+/.exec(source)?.[0] ?? source[0]}: ${text}`];
      found[names[Number(at) - 1 - head.length]!]!.push(last);
    }
  }
  return found as Record<keyof typeof mistakes, string[][]>;
}

const complaints = complain();

test.each(['noPer', 'noPerWithSchema'] as const)(
  '`per` is missing: one error that says so (%s)',
  (mistake) => {
    expect(complaints[mistake]).toEqual([
      [
        expect.stringMatching(
          /^at \{: Argument of type .* is not assignable to parameter of type 'ToolDefinition</,
        ),
        expect.stringMatching(/^Property 'per' is missing in type .* but required in type 'RememberedTool</),
      ],
    ]);
  },
);

test('the effect is unknown: the error lists the four', () => {
  expect(complaints.unknownEffect).toEqual([
    [
      `at effect: Type '"write"' is not assignable to type '"irreversible" | "read" | "write-idempotent" | "write-non-idempotent"'.`,
    ],
  ]);
});

test('an identity field is not an arg: the error is at the field, and lists the args', () => {
  expect(complaints.unknownIdentity).toEqual([[`at 'ID: Type '"ID"' is not assignable to type '"id"'.`]]);
});

test('`run` takes other args than the schema gives: the error is at `run`, and names the field', () => {
  const [[first, ...rest] = [], ...others] = complaints.otherArgs;
  expect(others).toEqual([]);
  expect(first).toMatch(
    /^at run: .* is not assignable to type '\(args: \{ id: string; \}, ctx: AttemptContext/,
  );
  expect(rest.slice(-2)).toEqual([
    "Types of property 'id' are incompatible.",
    "Type 'string' is not assignable to type 'number'.",
  ]);
});

test('a field is misspelt: the error says what was meant', () => {
  expect(complaints.misspelt).toEqual([[expect.stringMatching(/Did you mean to write 'identity'\?$/)]]);
});
