// npm run bench [-- part …] [--rows N] [--rounds N] [--evidence]

import { parseArgs } from 'node:util';
import { cli } from './cli.ts';
import { mcp } from './mcp.ts';
import { memory } from './memory.ts';
import { outbox } from './outbox.ts';
import { postgres } from './postgres.ts';
import { processes } from './processes.ts';
import { redis } from './redis.ts';
import { render, type Section, writeEvidence } from './report.ts';
import { server } from './server.ts';
import { growth, sqlite } from './sqlite.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rows: { type: 'string', default: '1m' },
    rounds: { type: 'string', default: '5' },
    evidence: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h' },
  },
});

interface Part {
  readonly name: string;
  readonly what: string;
  readonly run: () => Promise<readonly Section[]>;
}

const rounds = count(values.rounds);
const rows = count(values.rows);
const parts: readonly Part[] = [
  { name: 'memory', what: 'the path of a call without a database', run: () => memory(rounds) },
  {
    name: 'sqlite',
    what: 'semel on SQLite, beside node:sqlite alone; effects of 1 to 20 ms',
    run: () => sqlite(rounds),
  },
  {
    name: 'growth',
    what: 'a ledger of --rows rows on SQLite, beside one of 10,000',
    run: () => growth(rounds, rows),
  },
  {
    name: 'postgres',
    what: 'semel on Postgres, beside pg by hand and DBOS; effects of 1 to 20 ms',
    run: () => postgres(rounds),
  },
  {
    name: 'outbox',
    what: 'staged in a transaction, delivered once; beside one by hand, pg-boss, graphile-worker and BullMQ',
    run: () => outbox(rounds),
  },
  {
    name: 'redis',
    what: 'semel on Redis, beside ioredis and redis by hand, powertools and node-idempotency',
    run: () => redis(rounds),
  },
  { name: 'cli', what: 'starting a guarded command, beside node -e and flock', run: () => cli(rounds) },
  {
    name: 'mcp',
    what: 'messages and calls through semel mcp, beside the server alone',
    run: () => mcp(rounds),
  },
  {
    name: 'server',
    what: 'semel serve, beside the bare store behind a plain HTTP server',
    run: () => server(rounds),
  },
  { name: 'processes', what: '8 processes on one SQLite file, beside one', run: () => processes(rounds) },
];

const unknown = positionals.find((wanted) => !parts.some(({ name }) => name === wanted));
if (values.help) {
  process.stdout.write(help());
} else if (unknown !== undefined) {
  process.stderr.write(`There is no part ${unknown}.\n\n${help()}`);
  process.exitCode = 2;
} else {
  const sections: Section[] = [];
  for (const { name, run } of parts) {
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    process.stderr.write(`${name} …\n`);
    sections.push(...(await run()));
  }
  process.stdout.write(render(sections));
  const command = ['npm run bench --', ...process.argv.slice(2)].join(' ');
  if (values.evidence) writeEvidence(sections, command, rounds);
}

function help(): string {
  return `npm run bench [-- part …] [--rows N] [--rounds N] [--evidence]

Parts, of which any may be named (default: all):
${parts.map(({ name, what }) => `  ${name.padEnd(12)} ${what}`).join('\n')}

  --rows N     rows of the large ledger of growth: 60000, 60k, 1m, 10m (default: 1m)
  --rounds N   interleaved rounds, of which the median counts (default: 5)
  --evidence   write docs/internals/evidence/bench.md
`;
}

/** `10000`, `10k`, `10m`. */
function count(text: string): number {
  const [, digits, unit] = /^(\d+)([km]?)$/i.exec(text) ?? [];
  const factor = { k: 1000, m: 1_000_000 }[unit?.toLowerCase() ?? ''] ?? 1;
  const wanted = Number(digits) * factor;
  if (wanted >= 1) return wanted;
  process.stderr.write(`${text} is not a count: write 60000, 60k or 1m.\n`);
  process.exit(2);
}
