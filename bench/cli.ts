// How long a guarded command takes to start: beside Node.js itself with one spawn, and beside flock(1).

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleCommand } from '../scripts/build.ts';
import { type Contestant, measure } from './measure.ts';
import type { Section } from './report.ts';

const startsPerRound = 5;

export async function cli(rounds: number): Promise<readonly Section[]> {
  const folder = mkdtempSync(join(tmpdir(), 'semel-bench-'));
  try {
    await bundleCommand(join(folder, 'dist/bin'));
    const command = join(folder, 'dist/bin/semel.cjs');
    mkdirSync(join(folder, 'home'));
    const env = {
      PATH: process.env.PATH ?? '',
      HOME: join(folder, 'home'),
      SEMEL_STORE: `sqlite:${join(folder, 'ledger.db')}`,
      TZ: 'UTC',
    };
    const started = (name: string, file: string, args: readonly string[]): Contestant => ({
      name,
      run() {
        for (let n = 0; n < startsPerRound; n += 1) {
          const { status, stderr } = spawnSync(file, args, { env, cwd: folder });
          if (status !== 0) throw new Error(`${name}: exit ${status}: ${stderr}`);
        }
        return startsPerRound;
      },
    });
    const node = process.execPath;
    // The ledger exists, and what can be kept compiled is.
    for (const job of ['warm', 'done'])
      for (let n = 0; n < 2; n += 1)
        spawnSync(node, [command, 'run', job, '--per', 'day', '-q', '--', 'true'], { env });
    const figures = await measure(rounds, [
      started('node -e, one spawn', node, ['-e', "require('child_process').spawnSync('true')"]),
      started('semel run, runs', node, [command, 'run', 'x', '--per', 'none', '--', 'true']),
      started('semel run, skips', node, [command, 'run', 'done', '--per', 'day', '-q', '--', 'true']),
      started('flock -n f true', 'flock', ['-n', join(folder, 'lock'), 'true']),
    ]);
    const ms = (name: string) =>
      1000 / (figures.find((figure) => figure.name === name)?.perSecond ?? Number.NaN);
    const limit = ms('node -e, one spawn');
    return [
      {
        title: 'Starting a guarded command',
        figures,
        ratios: [
          {
            what: '`semel run x -- true` / `node -e` with one spawn, in time',
            value: ms('semel run, runs') / limit,
            goal: { direction: 'at most', value: 1.5 },
          },
          { what: 'a skip / `node -e` with one spawn, in time', value: ms('semel run, skips') / limit },
          {
            what: '`flock -n f true` / `node -e` with one spawn, in time',
            value: ms('flock -n f true') / limit,
          },
        ],
      },
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
