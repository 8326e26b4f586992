// Loads database drivers, which are optional peers, from where semel itself is installed or from SEMEL_DRIVERS. Never from
// the working directory: a checkout must not decide which code the command runs.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, isAbsolute, join, sep } from 'node:path';
import { SemelError } from '../../core/errors.ts';

/** With `require`: the command is not an ES module, and bundlers must not resolve an optional package. */
export function loadDriver(name: string): unknown {
  const place = listPlaces(ownFile(), process.env.SEMEL_DRIVERS).find((each) => existsSync(join(each, name)));
  // By its full path: by name, the search would continue in parent folders.
  if (place !== undefined) return createRequire(ownFile())(join(place, name));
  return process.versions.pnp === undefined ? undefined : fromPlugAndPlay(name);
}

export function missingDriver(names: readonly string[]): SemelError {
  const named = names.map((name) => `\`${name}\``);
  const happened =
    named.length === 1
      ? `The package ${named[0]} is not installed.`
      : `Neither ${named.join(' nor ')} is installed.`;
  return new SemelError('CONTRACT_INVALID', happened, {
    path: 'store',
    next: `${installAdvice(ownFile(), names[0] ?? '')} Or set SEMEL_DRIVERS to a folder whose node_modules has it, or pass your own client as \`store\`.`,
  });
}

/** The `node_modules` folders to load a driver from, nearest first. */
export function listPlaces(file: string, chosen: string | undefined): readonly string[] {
  return [...chosenPlaces(chosen), ...ownPlaces(file)];
}

/** Where to install a driver so that the semel at `file` finds it. */
export function installAdvice(file: string, name: string): string {
  const modules = outermostModules(file);
  if (modules === undefined) return `Run \`npm install ${name}\` in the project that semel is part of.`;
  const project = dirname(modules);
  if (basename(dirname(project)) === '_npx')
    return `Run \`npx --package semel --package ${name} -- semel …\`.`;
  return existsSync(join(project, 'package.json'))
    ? `Run \`npm install ${name}\` in ${project}, where semel is installed.`
    : `Run \`npm install --global ${name}\`: this semel is installed globally, in ${modules}.`;
}

/** Bundlers may take the file's name away; the drivers are then those of the program that was started. */
function ownFile(): string {
  const known: string | undefined = import.meta.filename;
  return known ?? process.argv[1] ?? process.execPath;
}

function chosenPlaces(chosen: string | undefined): readonly string[] {
  if (chosen === undefined || chosen === '') return [];
  if (isAbsolute(chosen)) return [join(chosen, 'node_modules')];
  throw new SemelError('CONTRACT_INVALID', 'SEMEL_DRIVERS is not an absolute path.', {
    path: 'store',
    next: 'Name the folder that has node_modules by its full path.',
  });
}

/**
 * An installed semel uses its own dependencies and its siblings; folders above the outermost `node_modules` may belong to
 * somebody else. Bundled into a program, or as a checkout, it uses what that program would get.
 */
function ownPlaces(file: string): readonly string[] {
  const outermost = outermostModules(file);
  // Excludes Node's global folders ($HOME/.node_modules, NODE_PATH).
  const upwards = (createRequire(file).resolve.paths('semel') ?? []).filter(
    (place) =>
      basename(place) === 'node_modules' &&
      file.startsWith(`${dirname(place)}${sep}`.replace(/[\\/]+$/, sep)),
  );
  return outermost === undefined ? upwards : upwards.filter((place) => place.startsWith(outermost));
}

function outermostModules(file: string): string | undefined {
  return /^.*?[\\/]node_modules(?=[\\/])/.exec(file)?.[0];
}

/** Yarn's Plug'n'Play has no node_modules, and allows only what semel declares. */
function fromPlugAndPlay(name: string): unknown {
  try {
    return createRequire(ownFile())(name);
  } catch {
    return undefined;
  }
}
