// npm run bench [-- sqlite|postgres|redis|keys|cli] [--rows N] [--rounds N] [--evidence]

import { parseArgs } from 'node:util';
import { cli } from './cli.ts';
import { keys } from './keys.ts';
import { postgres } from './postgres.ts';
import { redis } from './redis.ts';
import { print, type Section, writeEvidence } from './report.ts';
import { sqlite } from './sqlite.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rows: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '7' },
    evidence: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h' },
  },
});

if (values.help) {
  process.stdout.write(`npm run bench [-- sqlite|postgres|redis|keys|cli] [--rows N] [--rounds N] [--evidence]

  sqlite, postgres, redis, keys, cli   only these parts (default: all)
  --rows N       rows of the large ledger (default 1000000)
  --rounds N     interleaved rounds, of which the median counts (default 7)
  --evidence     write docs/evidence/bench.md
`);
} else {
  const rounds = Number(values.rounds);
  const wanted = (name: string) => positionals.length === 0 || positionals.includes(name);
  const sections: Section[] = [];
  if (wanted('keys')) sections.push(...(await keys(rounds)));
  if (wanted('sqlite')) sections.push(...(await sqlite({ rounds, few: 10_000, many: Number(values.rows) })));
  if (wanted('postgres')) sections.push(...(await postgres({ rounds, many: Number(values.rows) })));
  if (wanted('redis')) sections.push(...(await redis({ rounds })));
  if (wanted('cli')) sections.push(...(await cli(rounds)));
  print(sections);
  if (values.evidence) writeEvidence(sections, `npm run bench -- ${process.argv.slice(2).join(' ')}`, rounds);
}
