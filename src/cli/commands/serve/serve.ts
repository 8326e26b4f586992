// `semel serve`: the ledger over HTTP. Options and messages only; the work is in src/server.

import { lstatSync, rmSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { userInfo } from 'node:os';
import { dirname } from 'node:path';
import { type PolicyFile, readPolicyFile } from '../../../mcp/index.ts';
import {
  type AdminAct,
  defaultPort,
  digestToken,
  isLoopback,
  type Role,
  type RunningServer,
  roles,
  type Served,
  type StartOptions,
  startServer,
  type TokenEntry,
} from '../../../server/index.ts';
import type { Alert } from '../../../signals/index.ts';
import { findOtherWriters, makeFolder } from '../../../store/files.ts';
import { flagReader, maxTimerMs } from '../../args/flag-values.ts';
import { smallText } from '../../args/input.ts';
import { isAgent, mustBeOperator } from '../../caller.ts';
import { command, type ValuesOf } from '../../command.ts';
import { choice, text, texts, toggle } from '../../flags.ts';
import { chosenNamespace, storeFor } from '../../ledger.ts';
import { readPackageFile } from '../../package-file.ts';
import { complain, print, printAside, printable } from '../../render/print.ts';
import { usageError } from '../../usage.ts';
import { alertFlags, alertTargets, describeAlert, watchFor } from '../watch/alerts.ts';
import { addToken, localToken, localTokenPath, minTokenLength, readTokens } from './token-file.ts';

const flags = {
  port: text('<port>', 'the port (default: 8971; 0: any that is free)'),
  host: text('<host>', 'the address to listen on (default: 127.0.0.1)'),
  socket: text('<path>', 'listen on a unix socket instead'),
  policy: text('<file>', 'the tools and their policies'),
  define: toggle('let clients define tools that the policy file does not have'),
  tokens: text('<file>', 'further tokens, as digests'),
  role: choice(
    roles,
    'what the local token may do (default: admin), or with `token`: the new one (default: execute)',
  ),
  name: text('<name>', 'with `token`: its name, for people and the history'),
  'tls-cert': text('<file>', 'certificate, to be reached from other machines'),
  'tls-key': text('<file>', 'its key'),
  'behind-proxy': texts('<address>', 'only this proxy may connect, and it does TLS; a network: 10.0.0.0/8'),
  'allow-host': texts('<name>', 'a further name by which clients reach it'),
  'allow-origin': texts('<origin>', 'let web pages of this origin call'),
  log: choice(['none', 'json'], 'each line on stderr as JSON, and one per request (default: none)'),
  idle: text('<duration>', 'end when nobody has asked for this long'),
  grace: text('<duration>', 'how long to wait for open requests at the end (default: 10s)'),
  ...alertFlags,
} as const;

export default command({
  name: 'serve',
  takes: '[token] [options]',
  about: `Serves the ledger as a JSON API: ask before an effect (POST /v1/begin), renew the lease while it runs, report how it ended.
If a client dies, its lease ends, and what it may have done is in doubt. Every request needs a token. The first start writes
one to a file that only you can read, and prints where.
  token  adds a token to the file --tokens, with --name, --role and --namespace, and prints it once
With --webhook, --slack or --exec it also sends alerts, as semel watch does.
/docs and /openapi.json describe the API; docs/reference/http-api.md explains it.`,
  flags,
  examples: [
    'semel serve --policy semel.policy.json',
    'semel serve --define --port 8971',
    'semel serve --socket /run/user/1000/semel.sock --define',
    'semel serve token --tokens tokens.json --name ci --role execute --namespace shop',
    'semel serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem --allow-host ledger.example.com --tokens tokens.json',
  ],
  async run({ values, positionals, rest }) {
    const [word, ...more] = positionals;
    if ((word !== undefined && word !== 'token') || more.length > 0 || rest !== undefined)
      throw usageError('serve', 'expects `token`, or options only');
    if (word === 'token') return createToken(values);
    const role = values.role ?? 'admin';
    refuseJudges([role]);
    const read = flagReader('serve', values);
    const graceMs = read.duration('grace', 10_000, { to: maxTimerMs });
    const idleMs = values.idle === undefined ? undefined : read.duration('idle', 0, { to: maxTimerMs });
    const olderMs = read.duration('older', 0);
    const targets = alertTargets('serve', values);
    const listen = await placeOf(values);
    const own = ownToken(role);
    const tokens = [own.entry, ...(values.tokens === undefined ? [] : readTokens(values.tokens))];
    refuseJudges(tokens.map((token) => token.role));
    const policies: PolicyFile =
      values.policy === undefined
        ? { version: 1 }
        : readPolicyFile(smallText('serve', values.policy), values.policy);
    let lastAskedAt = performance.now();
    const store = await storeFor(values, { make: true });
    const options: StartOptions = {
      store,
      policies,
      mayDefine: values.define === true,
      tokens,
      listen,
      version: (JSON.parse(readPackageFile('package.json')) as { readonly version: string }).version,
      hosts: values['allow-host'] ?? [],
      origins: values['allow-origin'] ?? [],
      onWarning: values.log === 'json' ? logWarning : complain,
      onRequest: (request) => {
        lastAskedAt = performance.now();
        if (values.log === 'json') logRequest(request);
      },
      onAct: values.log === 'json' ? log : sayAct,
      behindProxy: values['behind-proxy'] ?? [],
      ...tlsOf(values),
    };
    const server = await start(options);
    if (values.log === 'json') log({ listening: server.url, tokenFile: own.path, isNewToken: own.isNew });
    else {
      printAside(`semel: listening on ${server.url}`);
      if (own.path !== undefined) printAside(`semel: token in ${own.path}${own.isNew ? ' (new)' : ''}`);
    }
    const watch = await watchFor(values, {
      ...{ store, targets, olderMs },
      url: values.url ?? ('socket' in listen ? undefined : server.url),
      onAlert: (alert) => (values.log === 'json' ? logAlert(alert) : complainOf(alert)),
    });
    const ending = new AbortController();
    const watching = targets.length === 0 ? undefined : watch.run(watchEveryMs, ending.signal);
    await untilOver(idleMs, () => performance.now() - lastAskedAt);
    ending.abort();
    await watch.close();
    await watching;
    await server.close(graceMs);
    return 0;
  },
});

/** Otherwise an agent could decide about its own calls, also by a file of tokens that it wrote itself. */
function refuseJudges(given: readonly Role[]): void {
  if (given.every((role) => role === 'execute') || !isAgent()) return;
  mustBeOperator('serve', 'serve with a token that may decide');
}

type Values = ValuesOf<typeof flags> & {
  readonly namespace: string | undefined;
  readonly store: string | undefined;
};

async function start(options: StartOptions): Promise<RunningServer> {
  try {
    return await startServer(options);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE')
      throw usageError(
        'serve',
        'another program listens there already',
        'Choose another --port or --socket.',
      );
    if (code === 'EACCES' || code === 'EADDRNOTAVAIL')
      throw usageError(
        'serve',
        `it cannot listen there (${code})`,
        'Choose another --host, --port or --socket.',
      );
    throw error;
  }
}

async function placeOf(values: Values): Promise<NonNullable<StartOptions['listen']>> {
  const { socket, host = '127.0.0.1', port = String(defaultPort) } = values;
  if (socket !== undefined) {
    if (values.host !== undefined || values.port !== undefined)
      throw usageError('serve', '--socket excludes --host and --port');
    const folder = dirname(socket);
    makeFolder(folder);
    const others = findOtherWriters(statSync(folder));
    if (others !== undefined)
      complain(
        `semel: ${folder} can be written by ${others}: somebody else could listen at ${socket} while this server does not, and get the tokens of its clients. Choose a folder of your own.`,
      );
    await removeStale(socket);
    return { socket };
  }
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) throw usageError('serve', '--port takes 0 to 65535');
  const isSafe = values['tls-cert'] !== undefined || values['behind-proxy'] !== undefined;
  if (!isLoopback(host) && !isSafe)
    throw usageError(
      'serve',
      `other machines could reach ${host}, and read tokens on their way`,
      'Add --tls-cert and --tls-key, or --behind-proxy with the address of the proxy that does TLS in front of it.',
    );
  return { host, port: Number(port) };
}

/** What a server of this user that was killed left behind. One that lives is found by `listen`. */
async function removeStale(socket: string): Promise<void> {
  const found = lstatSync(socket, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket())
    throw usageError('serve', `${socket} exists, and is not a socket`, 'Choose another --socket.');
  // A server that is busy, or that this user may not reach, fails in other ways.
  const isDead = await new Promise<boolean>((resolve) => {
    const probe = connect(socket, () => resolve(false));
    probe.on('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'ECONNREFUSED'));
    probe.on('connect', () => probe.destroy());
  });
  if (isDead && found.uid === process.geteuid?.()) rmSync(socket, { force: true });
}

function tlsOf(values: Values): Pick<StartOptions, 'tls'> {
  const { 'tls-cert': cert, 'tls-key': key } = values;
  if ((cert === undefined) !== (key === undefined))
    throw usageError('serve', '--tls-cert and --tls-key belong together');
  if (cert === undefined || key === undefined) return {};
  return { tls: { cert: smallText('serve', cert), key: smallText('serve', key) } };
}

interface OwnToken {
  readonly entry: TokenEntry;
  readonly path?: string;
  readonly isNew?: boolean;
}

function ownToken(role: Role): OwnToken {
  const { SEMEL_TOKEN: given } = process.env;
  const about = { name: 'local', role, namespace: '*' } as const;
  if (given !== undefined && given !== '') {
    if (given.length < minTokenLength)
      throw usageError('serve', 'SEMEL_TOKEN is shorter than 32 characters', 'Use a long random text.');
    return { entry: { ...about, sha256: digestToken(given) } };
  }
  const path = localTokenPath(role);
  const { token, isNew } = localToken(path);
  return { entry: { ...about, sha256: digestToken(token) }, path, isNew };
}

function createToken(values: Values): number {
  mustBeOperator('serve', 'create a token');
  const { tokens, name, role = 'execute' } = values;
  if (tokens === undefined || name === undefined)
    throw usageError('serve', '`token` needs --tokens <file> and --name <name>');
  const namespace = chosenNamespace(values) ?? 'default';
  const made = { at: new Date().toISOString(), by: userInfo().username };
  const token = addToken(tokens, { name, role, namespace, made });
  printAside(
    `semel: ${name} has the role ${role} in ${namespace === '*' ? 'all namespaces' : namespace}. Its token is shown only now:`,
  );
  print(token);
  return 0;
}

/** Strangers choose the method; everything else is the server's own. */
function logRequest({ method, path, status, tookMs, token }: Served): void {
  log({ method, path, status, ms: Math.round(tookMs * 10) / 10, token });
}

/** Always: where a record was forgotten, nothing else will say who did it. */
function sayAct({ act, namespace, tool, record, by }: AdminAct): void {
  complain(`${by}: ${act} ${tool} ${record} in ${namespace}`);
}

function logWarning(warning: string): void {
  log({ warning });
}

function log(line: object): void {
  // A name or an error may hold what a terminal obeys.
  process.stderr.write(`${printable(JSON.stringify({ time: new Date().toISOString(), ...line }))}\n`);
}

const watchEveryMs = 10_000;

function logAlert({ kind, doubt, target, error, again }: Alert): void {
  const { namespace, tool, ref } = doubt;
  log({ alert: kind, namespace, tool, ref, target, error, again });
}

function complainOf(alert: Alert): void {
  if (alert.error !== undefined) complain(describeAlert(alert));
}

async function untilOver(idleMs: number | undefined, idleFor: () => number): Promise<void> {
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
    if (idleMs === undefined) return;
    const check = () => {
      const left = idleMs - idleFor();
      if (left <= 0) resolve();
      else setTimeout(check, Math.max(50, left)).unref();
    };
    check();
  });
}
