// Preloaded into an example: kills it before or after a statement to Postgres, or around its mail. DIE_AT is `before <text>` or
// `after <text>`; a text that begins with an outer step (`a > b`) waits for that one first.

import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import pg from 'pg';

const [, when = '', steps = ''] = /^(before|after) (.*)$/.exec(process.env.DIE_AT ?? '') ?? [];
const left = steps.split(' > ').filter(Boolean);

function reached(text: string): boolean {
  const [next] = left;
  if (next === undefined || !text.toLowerCase().startsWith(next)) return false;
  left.shift();
  return left.length === 0;
}

const die = () => process.kill(process.pid, 'SIGKILL');

const { query } = pg.Client.prototype;
pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
  const [first] = args as [string | { text?: string }];
  const isTime = reached((typeof first === 'string' ? first : first.text) ?? '');
  if (isTime && when === 'before') die();
  const result = (query as (...all: unknown[]) => unknown).apply(this, args);
  if (isTime && result instanceof Promise) return result.finally(die);
  return result;
} as typeof query;

const { appendFileSync } = fs;
fs.appendFileSync = (...args) => {
  const isTime = reached('mail');
  if (isTime && when === 'before') die();
  appendFileSync(...args);
  if (isTime) die();
};
syncBuiltinESMExports();
