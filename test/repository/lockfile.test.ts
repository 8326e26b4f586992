// The lockfiles install everywhere. npm writes a lockfile without the optional packages that it cannot find, says nothing, and
// `npm ci` then stops on every machine: nothing else notices before CI.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

interface Locked {
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

type Lockfile = Readonly<Record<string, Locked>>;

function read(path: string): Lockfile {
  return JSON.parse(readFileSync(join(root, path), 'utf8')).packages;
}

/** As Node finds a package: in the node_modules of the dependant, then of every folder above it. */
function isLocked(packages: Lockfile, dependant: string, name: string): boolean {
  const folders = dependant.split('/node_modules/');
  for (let depth = folders.length; depth > 0; depth--)
    if (`${folders.slice(0, depth).join('/node_modules/')}/node_modules/${name}` in packages) return true;
  return `node_modules/${name}` in packages;
}

function listMissing(packages: Lockfile): readonly string[] {
  return Object.entries(packages).flatMap(([dependant, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !isLocked(packages, dependant, name))
      .map((name) => `${dependant} needs ${name}`),
  );
}

test.each(['package-lock.json', 'bench/peers/package-lock.json'])(
  '%s has every optional package, also those of other platforms',
  (path) => {
    expect(listMissing(read(path))).toEqual([]);
  },
);

test('an optional package that the lockfile lacks is noticed, at the top and nested', () => {
  const packages = {
    'node_modules/a': { optionalDependencies: { 'a-darwin': '1.0.0', 'a-linux': '1.0.0' } },
    'node_modules/a-linux': {},
    'node_modules/b/node_modules/a': { optionalDependencies: { 'a-darwin': '1.0.0', 'a-linux': '1.0.0' } },
    'node_modules/b/node_modules/a-darwin': {},
  };
  expect(listMissing(packages)).toEqual(['node_modules/a needs a-darwin']);
});

test.each(['package-lock.json', 'bench/peers/package-lock.json'])('%s names no registry', (path) => {
  const addresses = Object.values(read(path)).flatMap(({ resolved }) => resolved ?? []);
  expect(addresses.filter((address) => address.includes('://'))).toEqual([]);
});
