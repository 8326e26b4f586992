// semel serve beside the bare store behind a plain node:http server: a begin and a settle over HTTP for each call. The
// servers are processes of their own; their CPU per call says more than a rate where this process is the slower one.

import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { startPostgres } from '../test/servers/postgres.ts';
import { alone, next, result } from './calls.ts';
import { ledgerFolder } from './ledger-folder.ts';
import { type Contestant, measure, median, ratio } from './measure.ts';
import { atLeast, type Ratio, type Section } from './report.ts';
import type { ServedKind, Told } from './served.ts';

const token = `bench_${randomBytes(32).toString('base64url')}`;

const names: Readonly<Record<ServedKind, string>> = {
  bare: 'bare, each write by itself',
  grouped: 'bare, writes in groups',
  semel: 'semel serve',
};
const kinds = Object.keys(names) as ServedKind[];

export async function server(rounds: number): Promise<readonly Section[]> {
  using folder = ledgerFolder();
  await using postgres = await startPostgres({
    settings: { shared_buffers: '512MB', max_wal_size: '4GB', max_connections: '200' },
  });
  const sections: Section[] = [];
  for (const { title, address } of [
    { title: 'SQLite', address: (kind: ServedKind) => `sqlite:${folder.path(`${kind}.db`)}` },
    // Two contestants on one table do not meet: they run in turn, with keys of their own.
    { title: 'Postgres', address: () => postgres.url },
  ]) {
    const servers: Served[] = [];
    try {
      for (const kind of kinds) servers.push(await start(kind, address(kind)));
      for (const connections of [16, 128])
        sections.push(
          await compare(`The server on ${title}, ${connections} connections`, rounds, servers, connections),
        );
    } finally {
      for (const { child } of servers) child.kill();
    }
  }
  return sections;
}

interface Served {
  readonly kind: ServedKind;
  readonly child: ChildProcess;
  readonly port: number;
}

async function start(kind: ServedKind, address: string): Promise<Served> {
  const child = fork(fileURLToPath(new URL('served.ts', import.meta.url)), [kind, address, token]);
  const [{ url }] = (await once(child, 'message')) as [Extract<Told, { url: string }>];
  const port = Number(new URL(url).port);
  // Its code is compiled before it is measured: by calls, since a busy machine makes few in a time.
  const warmUp = async () => {
    const client = await open(port);
    for (let n = 0; n < 100; n += 1) await call(client);
    client.end();
  };
  await Promise.all(Array.from({ length: 32 }, warmUp));
  return { kind, child, port };
}

async function readCpu({ child }: Served): Promise<number> {
  child.send('cpu');
  const [{ cpuMicros }] = (await once(child, 'message')) as [Extract<Told, { cpuMicros: number }>];
  return cpuMicros;
}

async function compare(
  title: string,
  rounds: number,
  servers: readonly Served[],
  connections: number,
): Promise<Section> {
  const cpu = new Map<ServedKind, number[]>();
  const contestants = servers.map(
    (served): Contestant => ({
      name: names[served.kind],
      async run() {
        const before = await readCpu(served);
        const count = await crowd(served.port, connections);
        const after = await readCpu(served);
        cpu.set(served.kind, [...(cpu.get(served.kind) ?? []), (after - before) / count]);
        return count;
      },
    }),
  );
  const figures = await measure(rounds, contestants);
  // Without the round that only warms up.
  const micros = (kind: ServedKind) => (cpu.get(kind) ?? []).slice(1);
  const cpuRatio = median(
    micros('semel').map((own, round) => (micros('grouped')[round] ?? Number.NaN) / own),
  );
  const ratios: readonly Ratio[] = [
    {
      what: 'semel serve / the better of the bare ones',
      value: ratio(figures, names.semel, names.bare, names.grouped),
      goal: atLeast(0.7),
    },
    { what: 'semel serve / bare, each write by itself', value: ratio(figures, names.semel, names.bare) },
    ...kinds.map((kind) => ({
      what: `${names[kind]}: CPU µs of the server per call`,
      value: median(micros(kind)),
    })),
    { what: 'CPU of the server per call, bare in groups / semel serve', value: cpuRatio },
  ];
  return { title, figures, ratios };
}

async function crowd(port: number, connections: number): Promise<number> {
  const clients = await Promise.all(Array.from({ length: connections }, () => open(port)));
  const counts = await Promise.all(clients.map((client) => alone(() => call(client))));
  for (const { end } of clients) end();
  return counts.reduce((sum, count) => sum + count, 0);
}

async function call({ post }: Client): Promise<void> {
  const begun = (await post('begin', { tool: 'email.send', args: next() })) as { attempt?: string };
  const settled = (await post('settle', { attempt: begun.attempt, outcome: 'succeeded', value: result })) as {
    recorded?: boolean;
  };
  if (settled.recorded !== true) throw new Error(`${JSON.stringify(begun)} ${JSON.stringify(settled)}`);
}

interface Client {
  post(path: string, body: object): Promise<unknown>;
  end(): void;
}

/** As little as speaks HTTP to these servers: what a client costs here would make them all alike. */
async function open(port: number): Promise<Client> {
  const socket = connect(port, '127.0.0.1').setNoDelay();
  await once(socket, 'connect');
  let read = '';
  let answer: { resolve: (body: unknown) => void; reject: (error: unknown) => void } | undefined;
  socket.setEncoding('latin1').on('data', (text: string) => {
    read += text;
    const end = read.indexOf('\r\n\r\n');
    if (end < 0) return;
    const length = Number(/content-length: (\d+)/i.exec(read)?.[1]);
    if (read.length < end + 4 + length) return;
    const body = read.slice(end + 4);
    read = '';
    answer?.resolve(JSON.parse(body));
  });
  socket.on('error', (error) => answer?.reject(error));
  socket.on('close', () => answer?.reject(new Error('The server closed the connection.')));
  const head = `Host: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json`;
  return {
    post(path, body) {
      const text = JSON.stringify(body);
      return new Promise((resolve, reject) => {
        answer = { resolve, reject };
        // All of it is ASCII.
        socket.write(`POST /v1/${path} HTTP/1.1\r\n${head}\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
      });
    },
    end: () => void socket.destroy(),
  };
}
