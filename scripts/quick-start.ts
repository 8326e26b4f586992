// npm run quick-start: types the README's cron job in an empty home, with only the packed tarball and a crontab that is a
// file; runs the installed line three times; asserts one effect; prints how long a new user would have taken.

import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { readBlocks } from './docs/blocks.ts';
import { pack } from './pack.ts';

const limitMs = 120_000;
const root = join(import.meta.dirname, '..');
const startedAt = performance.now();
const temporary = mkdtempSync(join(tmpdir(), 'semel-quick-start-'));
try {
  const home = join(temporary, 'home');
  const bin = join(temporary, 'bin');
  mkdirSync(home);
  mkdirSync(bin);
  const table = join(temporary, 'crontab.txt');
  writeFileSync(
    join(bin, 'crontab'),
    `#!/bin/sh\n[ "$1" = - ] && exec cat > '${table}'\nexec cat '${table}' 2>/dev/null\n`,
  );
  chmodSync(join(bin, 'crontab'), 0o755);
  const env = {
    HOME: home,
    PATH: [join(home, 'node_modules/.bin'), bin, dirname(process.execPath), process.env.PATH ?? ''].join(
      delimiter,
    ),
    LANG: 'C.UTF-8',
  };
  const sh = (line: string, name: string, its: NodeJS.ProcessEnv = env) => {
    const { status, stdout, stderr } = spawnSync('sh', ['-c', line], {
      cwd: home,
      env: its,
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`${name} ended with ${status}:\n${stdout}${stderr}`);
    return stdout;
  };

  sh(`npm install --offline --no-audit --no-fund '${pack(temporary)}'`, 'npm install');
  const { blocks } = readBlocks('README.md', readFileSync(join(root, 'README.md'), 'utf8'));
  const typed = blocks.map(({ code }) => code.join('\n')).filter((code) => /semel run blog/.test(code));
  const [script, install] = typed;
  if (script === undefined || install === undefined || typed.length !== 2)
    throw new Error(`the README has ${typed.length} blocks of its cron job, not two`);
  // Cron does the first run: what is typed is the script and the line.
  sh(script.slice(0, script.indexOf('semel run')), 'the script');
  sh(install, 'the line for the crontab');
  const line = readFileSync(table, 'utf8').trim();
  const command = line.split(/\s+/).slice(5).join(' ');
  for (let start = 0; start < 3; start += 1)
    // Cron gives a program almost nothing.
    sh(command, `start ${start + 1}`, { HOME: home, PATH: '/usr/bin:/bin', SHELL: '/bin/sh' });
  const effects = existsSync(join(home, 'blog.txt'))
    ? readFileSync(join(home, 'blog.txt'), 'utf8').split('\n').length - 1
    : 0;
  if (effects !== 1) throw new Error(`three starts made ${effects} posts, not one`);
  const tookMs = performance.now() - startedAt;
  if (tookMs > limitMs) throw new Error(`it took ${Math.round(tookMs / 1000)} s`);
  console.log(
    `three starts of the installed line, one post; typed, installed and run in ${(tookMs / 1000).toFixed(1)} s`,
  );
} finally {
  rmSync(temporary, { recursive: true, force: true });
}
