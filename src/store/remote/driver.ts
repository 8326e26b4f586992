// Database drivers are optional peers. They are loaded from the folders that semel itself is installed in, or from the one
// that SEMEL_DRIVERS names. Never from the working folder: a checkout must not decide which code the command runs.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, isAbsolute, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SemelError } from '../../core/errors.ts';

/** By `require`: the command is not an ES module, and bundlers must not ask for an optional package. */
export function loadDriver(name: string): unknown {
  const place = listPlaces(ownFile(), process.env.SEMEL_DRIVERS).find((each) => existsSync(join(each, name)));
  // By its full path: a search by name would go on to the folders above.
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

/** The `node_modules` folders that a driver may come from, nearest first. */
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

function ownFile(): string {
  return fileURLToPath(import.meta.url);
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
 * An installed semel takes its own dependencies and its siblings; above the outermost `node_modules` begins what somebody
 * else may own. A semel that was bundled into a program, or is a checkout, takes what that program would get.
 */
function ownPlaces(file: string): readonly string[] {
  const outermost = outermostModules(file);
  // Node's global folders ($HOME/.node_modules, NODE_PATH) lie on no way up from here.
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

/** Yarn's Plug'n'Play has no such folders, and allows only what semel declares. */
function fromPlugAndPlay(name: string): unknown {
  try {
    return createRequire(ownFile())(name);
  } catch {
    return undefined;
  }
}
