// What the MCP proxy costs: a message that is only passed on, a call that runs, a call that is replayed, each beside the
// server alone. Many messages at once for the first, one by one for the calls.

import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { bundle } from '../scripts/build.ts';
import { ledgerFolder } from './ledger-folder.ts';
import { type Contestant, find, measure, median, ratio } from './measure.ts';
import type { Section } from './report.ts';

/** Seven rounds pass more than 100,000. */
const messagesPerRound = 20_000;
const callsPerRound = 200;

/** Answers whatever has an id. */
const server = `
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method } = JSON.parse(line);
    const result = method === 'tools/list'
      ? { tools: [{ name: 'act', inputSchema: { type: 'object' } }] }
      : { content: [{ type: 'text', text: 'done' }] };
    process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
  });`;

interface Peer {
  /** Sends all at once; done when each has its answer. */
  many(lines: readonly string[]): Promise<void>;
  end(): Promise<void>;
}

export async function mcp(rounds: number): Promise<readonly Section[]> {
  using folder = ledgerFolder();
  await bundle(folder.path('dist'));
  const command = join(folder.path('dist/lib'), 'semel.cjs');
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: folder.path('home'),
    SEMEL_STORE: `sqlite:${folder.path('ledger.db')}`,
  };
  const node = process.execPath;
  const alone = peer(spawn(node, ['-e', server], { env, stdio: ['pipe', 'pipe', 'inherit'] }));
  const through = peer(
    spawn(node, [command, 'mcp', '--conversation', 'bench', '--turn', '1', '--', node, '-e', server], {
      env,
      stdio: ['pipe', 'pipe', 'inherit'],
    }),
  );
  const ping = Array.from({ length: messagesPerRound }, (_, id) => lineOf(id, 'ping', {}));
  const messages = (name: string, to: Peer): Contestant => ({
    name,
    isElsewhere: true,
    async run() {
      await to.many(ping);
      return messagesPerRound;
    },
  });
  let n = 0;
  const calls = (name: string, to: Peer, isNew: boolean): Contestant => ({
    name,
    isElsewhere: true,
    async run() {
      for (let id = 0; id < callsPerRound; id += 1) {
        n += 1;
        const args = { n: isNew ? n : id, kind: isNew ? 'new' : 'again' };
        await to.many([lineOf(id, 'tools/call', { name: 'act', arguments: args })]);
      }
      return callsPerRound;
    },
  });
  try {
    // The ledger is made, and what is replayed has run.
    await calls('', through, false).run();
    await alone.many(ping);
    const figures = await measure(rounds, [
      messages('messages, server alone', alone),
      messages('messages, through semel mcp', through),
      calls('calls one by one, server alone', alone, true),
      calls('calls one by one, through semel mcp, run', through, true),
      calls('calls one by one, through semel mcp, replayed', through, false),
    ]);
    const microseconds = (name: string) => 1_000_000 / median(find(figures, name).rates);
    const extra = (name: string, than: string) => microseconds(name) - microseconds(than);
    const call = 'calls one by one, server alone';
    return [
      {
        title: 'The MCP proxy',
        figures,
        ratios: [
          {
            what: 'a message through the proxy / server alone, in time',
            value: ratio(figures, 'messages, server alone', 'messages, through semel mcp'),
          },
          {
            what: 'microseconds more per forwarded message',
            value: extra('messages, through semel mcp', 'messages, server alone'),
          },
          {
            what: 'microseconds more per guarded call that runs (two durable writes)',
            value: extra('calls one by one, through semel mcp, run', call),
          },
          {
            what: 'microseconds more per guarded call that is replayed (the server is not asked)',
            value: extra('calls one by one, through semel mcp, replayed', call),
          },
        ],
      },
    ];
  } finally {
    await Promise.all([alone.end(), through.end()]);
  }
}

function lineOf(id: number, method: string, params: object): string {
  return `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`;
}

function peer(child: ChildProcess): Peer {
  let answered = 0;
  let wanted = Number.POSITIVE_INFINITY;
  let done: () => void = () => undefined;
  child.stdout?.on('data', (chunk: Buffer) => {
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) answered += 1;
    if (answered >= wanted) done();
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  return {
    async many(lines) {
      answered = 0;
      wanted = lines.length;
      const { promise, resolve } = Promise.withResolvers<void>();
      done = resolve;
      child.stdin?.write(lines.join(''));
      await promise;
    },
    end() {
      child.stdin?.end();
      return ended;
    },
  };
}
