import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { installAdvice, listPlaces } from './driver.ts';

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'semel-peer-'));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

test.each([
  ['a project', '/srv/app/node_modules/semel/dist/bin/x.cjs', '/srv/app/node_modules'],
  ['a global install', '/usr/lib/node_modules/semel/dist/bin/x.cjs', '/usr/lib/node_modules'],
  ['npx', '/home/u/.npm/_npx/1f/node_modules/semel/dist/bin/x.cjs', '/home/u/.npm/_npx/1f/node_modules'],
  [
    'pnpm',
    '/srv/app/node_modules/.pnpm/semel@1_pg@8/node_modules/semel/dist/x.js',
    '/srv/app/node_modules/.pnpm/semel@1_pg@8/node_modules',
  ],
])('installed by %s, semel takes drivers from beside itself and from nowhere above', (_, file, beside) => {
  const places = listPlaces(file, undefined);
  expect(places).toContain(beside);
  const outermost = beside.slice(0, beside.indexOf('node_modules') + 'node_modules'.length);
  for (const place of places) expect(place.startsWith(outermost), place).toBe(true);
});

test('a program that semel was bundled into gets what its own imports would, and no global folder', () => {
  const places = listPlaces('/srv/app/dist/server.js', undefined);
  expect(places).toEqual([
    '/srv/app/dist/node_modules',
    '/srv/app/node_modules',
    '/srv/node_modules',
    '/node_modules',
  ]);
});

test('SEMEL_DRIVERS names a folder first, by its full path only', () => {
  const file = '/srv/app/node_modules/semel/dist/x.js';
  expect(listPlaces(file, '/opt/drivers')[0]).toBe('/opt/drivers/node_modules');
  expect(listPlaces(file, '')).toEqual(listPlaces(file, undefined));
  expect(() => listPlaces(file, 'drivers')).toThrow(/absolute path/);
});

test('what to install, and where, depends on how semel itself was installed', () => {
  const root = folder();
  const modules = join(root, 'node_modules');
  mkdirSync(modules);
  const file = join(modules, 'semel/dist/x.js');
  expect(installAdvice(file, 'pg')).toContain('npm install --global pg');
  writeFileSync(join(root, 'package.json'), '{}');
  expect(installAdvice(file, 'pg')).toContain(`npm install pg\` in ${root}`);
  expect(installAdvice('/h/.npm/_npx/1/node_modules/semel/x.js', 'pg')).toContain(
    'npx --package semel --package pg',
  );
});
