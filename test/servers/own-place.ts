// A place of its own on the shared servers for each test or file, so that they can run side by side. Nobody cleans it
// up: the servers end with the run.

import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

export interface OwnSchema {
  readonly url: string;
  /** It exists and is empty. */
  readonly schema: string;
}

export interface OwnPrefix {
  readonly url: string;
  /** No key begins with it. */
  readonly prefix: string;
}

export async function ownSchema(): Promise<OwnSchema> {
  const url = inject('postgresUrl');
  const schema = newName();
  const client = new pg.Client(url);
  await client.connect();
  await client.query(`create schema ${schema}`);
  await client.end();
  return { url, schema };
}

/** Undefined if no Redis can be had; the run has said so at its start. */
export function ownPrefix(): OwnPrefix | undefined {
  const url = inject('redisUrl');
  return url === '' ? undefined : { url, prefix: `${newName()}:` };
}

function newName(): string {
  return `t_${randomBytes(8).toString('hex')}`;
}
