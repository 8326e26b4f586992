// One of the servers that bench/server.ts starts, in a process of its own: semel's, or the bare store behind a plain one.
// node served.ts semel|bare|grouped <sqlite:path | postgres://…> <token>

import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createTokens } from '../src/server/access/tokens.ts';
import { readJson } from '../src/server/exchange/json.ts';
import { digestToken, startServer } from '../src/server/index.ts';
import { rawPairs } from './raw-pairs.ts';

export type ServedKind = 'semel' | 'bare' | 'grouped';

export type Told = { readonly url: string } | { readonly cpuMicros: number };

const [kind, address, token] = process.argv.slice(2) as [ServedKind, string, string];
const entry = { name: 'bench', role: 'execute', namespace: 'bench', sha256: digestToken(token) } as const;

process.on('message', () => {
  const { user, system } = process.cpuUsage();
  tell({ cpuMicros: user + system });
});
process.on('disconnect', () => process.exit());
tell({ url: await (kind === 'semel' ? serveSemel() : serveBare()) });

async function serveSemel(): Promise<string> {
  const { url } = await startServer({
    store: address,
    policies: {
      version: 1,
      tools: { 'email.send': { effect: 'write-non-idempotent', per: 'ever', identity: ['lead'] } },
    },
    tokens: [entry],
    listen: { host: '127.0.0.1', port: 0 },
    onWarning: (warning) => process.stderr.write(`${warning}\n`),
  });
  return url;
}

/** The same bodies, read as strictly, with the same check of the token; answers with the same members, as far as it has them. */
async function serveBare(): Promise<string> {
  const pairs = await rawPairs(address, kind === 'grouped');
  const tokens = createTokens([entry]);
  const act = async (path: string | undefined, body: unknown): Promise<object> => {
    if (path === '/v1/begin') {
      const { args } = body as { args: { lead: string } };
      const attempt = randomBytes(16).toString('base64url');
      await pairs.claim({ key: args.lead, token: attempt, text: JSON.stringify(args) });
      return { outcome: 'execute', attempt: `${attempt} ${args.lead}`, args, claimed: true, leaseMs: 60_000 };
    }
    const { attempt, value } = body as { attempt: string; value: unknown };
    const [own = '', key = ''] = attempt.split(' ');
    await pairs.settle({ key, token: own, text: JSON.stringify(value) });
    return { outcome: 'settled', recorded: true, value };
  };
  const server = createServer(async (request, response) => {
    const shown = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
    const isKnown = tokens.find(shown) !== undefined;
    const text = JSON.stringify(isKnown ? await act(request.url, readJson(await readAll(request))) : {});
    response.writeHead(isKnown ? 200 : 401, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    });
    response.end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function readAll(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => void chunks.push(chunk));
    request.on('end', () => resolve(Buffer.concat(chunks)));
    request.on('error', reject);
  });
}

function tell(told: Told): void {
  process.send?.(told);
}
