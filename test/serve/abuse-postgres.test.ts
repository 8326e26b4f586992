// Texts that Postgres cannot store are the client's mistake, not a failure of the store.

import pg from 'pg';
import { expect, test } from 'vitest';
import { digestToken, endpoints, startServer } from '../../src/server/index.ts';
import { postgresStore } from '../../src/stores/postgres/index.ts';
import { ownSchema } from '../servers/own-place.ts';
import { corpusFor } from './abuse/corpus.ts';

test('on Postgres, odd characters in any field are refused or stored', async () => {
  const { url, schema } = await ownSchema();
  const pool = new pg.Pool({ connectionString: url });
  const token = 'a-token-that-is-long-enough-to-be-one-of-them';
  const server = await startServer({
    store: postgresStore({ client: pool, schema, durability: 'accept-loss' }),
    policies: { version: 1, tools: { plain: { effect: 'write-non-idempotent', per: 'ever' } } },
    mayDefine: true,
    tokens: [{ name: 'all', role: 'admin', namespace: 'shop', sha256: digestToken(token) }],
    version: '0.0.0',
    listen: { host: '127.0.0.1', port: 0 },
    onWarning: () => undefined,
  });
  const authorization = `Bearer ${token}`;
  const begun = await fetch(`${server.url}/v1/begin`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ tool: 'plain', args: 'first' }),
  });
  const { attempt, recordKey } = (await begun.json()) as {
    readonly attempt: string;
    readonly recordKey: string;
  };
  const known = {
    attempt,
    ref: `${recordKey}@1`,
    stolenAttempt: attempt,
    stolenRef: 'x@1',
    stolenKey: recordKey,
  };
  const odd = endpoints
    .flatMap((endpoint) => corpusFor(endpoint, known))
    .filter(({ name }) => / is (a NUL|half of a pair|the other half|bidi|escapes)$/.test(name));
  expect(odd.length).toBeGreaterThan(100);
  for (const { name, method, path, headers, body } of odd) {
    const answer = await fetch(`${server.url}${path}`, {
      method,
      headers: { authorization, ...headers },
      ...(body === undefined ? {} : { body }),
    });
    const text = await readText(answer);
    expect(answer.status, `${name}: ${text}`).toBeLessThan(500);
    expect(text, name).not.toMatch(/"status":5\d\d/);
  }
  await server.close(0);
  await pool.end();
});

/** Events have no end: what comes first is enough. */
async function readText(answer: Response): Promise<string> {
  if (answer.headers.get('content-type') !== 'text/event-stream') return answer.text();
  const reader = answer.body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  await reader?.cancel();
  return new TextDecoder().decode(value);
}
