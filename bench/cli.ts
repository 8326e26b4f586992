// How long a guarded command takes to start: beside Node.js itself with one spawn, and beside flock(1).

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundle } from '../scripts/build.ts';
import { type Contestant, measure, ratio } from './measure.ts';
import { atMost, type Section } from './report.ts';

const startsPerRound = 5;

export async function cli(rounds: number): Promise<readonly Section[]> {
  const folder = mkdtempSync(join(tmpdir(), 'semel-bench-'));
  try {
    await bundle(join(folder, 'dist'));
    const command = join(folder, 'dist/lib/semel.cjs');
    mkdirSync(join(folder, 'home'));
    const env = {
      PATH: process.env.PATH ?? '',
      HOME: join(folder, 'home'),
      SEMEL_STORE: `sqlite:${join(folder, 'ledger.db')}`,
      TZ: 'UTC',
    };
    const start = (name: string, file: string, args: readonly string[]): Contestant => ({
      name,
      isElsewhere: true,
      run() {
        for (let n = 0; n < startsPerRound; n += 1) {
          const { status, stderr } = spawnSync(file, args, { env, cwd: folder });
          if (status !== 0) throw new Error(`${name}: exit ${status}: ${stderr}`);
        }
        return startsPerRound;
      },
    });
    const node = process.execPath;
    const run = (job: string, ...rest: readonly string[]) => [command, 'run', job, ...rest];
    // The ledger exists, and after a run of more than two seconds all that it called is kept compiled.
    for (const rest of [
      ['--', 'true'],
      ['--', 'true'],
      ['--', 'sleep', '2.2'],
      ['--', 'sleep', '2.2'],
    ])
      spawnSync(node, run('x', ...rest), { env });
    spawnSync(node, run('done', '--per', 'day', '-q', '--', 'true'), { env });
    const bare = '`node -e` with one spawn';
    const figures = await measure(rounds, [
      start(bare, node, ['-e', "require('child_process').spawnSync('true')"]),
      start('`semel run x -- true`', node, run('x', '--', 'true')),
      start('the same, done already', node, run('done', '--per', 'day', '-q', '--', 'true')),
      start('`flock -n f true`', 'flock', ['-n', join(folder, 'lock'), 'true']),
    ]);
    const time = (name: string) => ratio(figures, bare, name);
    return [
      {
        title: 'Starting a guarded command',
        figures,
        ratios: [
          { what: `time / ${bare}`, value: time('`semel run x -- true`'), goal: atMost(1.5) },
          { what: `time / ${bare}, done already`, value: time('the same, done already') },
          { what: `\`flock -n f true\` / ${bare}`, value: time('`flock -n f true`') },
        ],
      },
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
