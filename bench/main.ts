// npm run bench [-- part …] [--rows N] [--rounds N] [--evidence]

import { parseArgs } from 'node:util';
import { cli } from './cli.ts';
import { keys } from './keys.ts';
import { mcp } from './mcp.ts';
import { peers } from './peers.ts';
import { postgres } from './postgres.ts';
import { processes } from './processes.ts';
import { redis } from './redis.ts';
import { print, type Section, writeEvidence } from './report.ts';
import { sqlite } from './sqlite.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rows: { type: 'string', default: '1m' },
    rounds: { type: 'string', default: '7' },
    evidence: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h' },
  },
});

interface Part {
  readonly name: string;
  readonly what: string;
  /** Only where it is asked for by name. */
  readonly byName?: boolean;
  readonly run: () => Promise<readonly Section[]>;
}

const rounds = count(values.rounds);
const many = count(values.rows);
const parts: readonly Part[] = [
  { name: 'keys', what: 'a key, beside JSON.stringify and sha256', run: () => keys(rounds) },
  {
    name: 'sqlite',
    what: 'semel on SQLite, beside node:sqlite alone; staggered effects; a large ledger',
    run: () => sqlite({ rounds, few: 10_000, many }),
  },
  {
    name: 'processes',
    what: '8 processes on one SQLite file, beside one',
    run: () => processes(rounds),
  },
  {
    name: 'postgres',
    what: 'semel on Postgres, beside pg by hand; staggered effects; a large ledger',
    run: () => postgres({ rounds, many }),
  },
  {
    name: 'redis',
    what: 'semel on Redis, beside ioredis and redis by hand',
    run: () => redis({ rounds }),
  },
  {
    name: 'peers',
    what: 'semel beside powertools, node-idempotency and DBOS, installed by npm ci in bench/peers',
    byName: true,
    run: () => peers(rounds),
  },
  { name: 'cli', what: 'starting a guarded command, beside node -e and flock', run: () => cli(rounds) },
  {
    name: 'mcp',
    what: 'messages and calls through semel mcp, beside the server alone',
    run: () => mcp(rounds),
  },
];

const unknown = positionals.find((wanted) => !parts.some(({ name }) => name === wanted));
if (values.help) {
  process.stdout.write(help());
} else if (unknown !== undefined) {
  process.stderr.write(`There is no part ${unknown}.\n\n${help()}`);
  process.exitCode = 2;
} else {
  const sections: Section[] = [];
  for (const { name, byName = false, run } of parts)
    if (positionals.length === 0 ? !byName : positionals.includes(name)) sections.push(...(await run()));
  print(sections);
  if (values.evidence) writeEvidence(sections, `npm run bench -- ${process.argv.slice(2).join(' ')}`, rounds);
}

function help(): string {
  const lines = parts.map(
    ({ name, what, byName }) => `  ${name.padEnd(12)} ${what}${byName ? ' (only where it is named)' : ''}`,
  );
  return `npm run bench [-- part …] [--rows N] [--rounds N] [--evidence]

Parts, of which any may be named:
${lines.join('\n')}

  --rows N     rows of the large ledgers of sqlite and postgres: 60000, 60k, 1m, 10m (default 1m)
  --rounds N   interleaved rounds, of which the median counts (default 7)
  --evidence   write docs/evidence/bench.md
`;
}

/** `10000`, `10k`, `10m`. */
function count(text: string): number {
  const [, digits, unit] = /^(\d+)([km]?)$/i.exec(text) ?? [];
  const factor = { k: 1000, m: 1_000_000 }[unit?.toLowerCase() ?? ''] ?? 1;
  const wanted = Number(digits) * factor;
  if (wanted >= 1) return wanted;
  process.stderr.write(`${text} is not a number of something: write 60000, 60k or 1m.\n`);
  process.exit(2);
}
