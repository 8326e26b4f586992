#!/usr/bin/env node
// The installed `semel`: loads the rest of the command, with code that an earlier start compiled. On a Node.js that is
// too old only this file may load, so that it can say so.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Script } from 'node:vm';
import { describeUnsupportedNode } from '../core/node-support.ts';
import { codeCache } from './code-cache.ts';

/** The file of main.ts; scripts/build.ts puts its name in. */
declare const mainFile: string;

const folder = import.meta.dirname;
const cache = codeCache();
const loaded = new Map<string, { exports: unknown }>();

function load(file: string): unknown {
  const known = loaded.get(file);
  if (known !== undefined) return known.exports;
  const module = { exports: {} };
  loaded.set(file, module);
  const filename = join(folder, file);
  const cachedData = cache.find(file);
  // Not with `node:module`, which loads more than is needed here.
  const code = `(function (exports, require, module, __filename, __dirname) {${readFileSync(filename, 'latin1')}\n})`;
  const script = new Script(code, { filename, cachedData });
  cache.note(file, script, cachedData);
  script.runInThisContext()(module.exports, required, module, filename, folder);
  return module.exports;
}

function required(name: string): unknown {
  return name.startsWith('./') ? load(name.slice(2)) : process.getBuiltinModule(name);
}

const tooOld = describeUnsupportedNode(process.versions.node);
if (tooOld === undefined) {
  process.on('exit', cache.keep);
  load(mainFile);
} else {
  process.stderr.write(`${tooOld}\n`);
  process.exitCode = 69;
}
