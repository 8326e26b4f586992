// Verifiers that look at one known place: an object in S3, a version in a registry, a ref of a git remote.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import type { AttemptContext, VerifyContext } from 'semel';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  type Verifier,
  verifyGitPush,
  verifyNpmPublish,
  verifyS3Object,
} from '../../src/providers/verifiers/index.ts';
import { rig } from '../library/support.ts';
import { newScratch } from '../processes/scratch.ts';

interface File {
  readonly name: string;
}

const file: File = { name: 'report' };
const minute = 60_000;

/** Runs the effect in a process that dies in doubt; another one verifies and sweeps. */
async function afterDoubt<Value>(
  effect: (args: File, ctx: Pick<AttemptContext, 'mark'>) => Promise<Value> | Value,
  verify: Verifier<File, Value>,
  reaches: boolean,
) {
  const made = rig();
  let runs = 0;
  const contract = { name: 'publish', effect: 'irreversible', per: 'ever' } as const;
  const first = made.semel.tool({
    ...contract,
    run: async (args: File, ctx) => {
      if (reaches) await effect(args, ctx);
      throw new Error('socket hang up');
    },
  });
  await first.try(file);
  const semel = made.another();
  const tool = semel.tool({
    ...contract,
    run: (args: File, ctx) => {
      runs += 1;
      return effect(args, ctx);
    },
    verify: verify as Verifier<File, never>,
  });
  return {
    clock: made.clock,
    sweep: () => semel.doubts.sweep(),
    tell: () => tool.try(file),
    runs: () => runs,
  };
}

/** Found at once where it landed; where it did not, run again exactly once. */
async function decides<Value>(
  effect: Parameters<typeof afterDoubt<Value>>[0],
  verify: Verifier<File, Value>,
  forget: () => void,
): Promise<void> {
  const landed = await afterDoubt(effect, verify, true);
  expect(await landed.sweep()).toEqual({ landed: 1, notLanded: 0, open: 0 });
  expect(landed.runs()).toBe(0);
  forget();
  const lost = await afterDoubt(effect, verify, false);
  expect(await lost.sweep()).toEqual({ landed: 0, notLanded: 0, open: 1 });
  await lost.clock.advance(7 * minute);
  expect(await lost.sweep()).toEqual({ landed: 1, notLanded: 0, open: 0 });
  expect(await lost.sweep()).toEqual({ landed: 0, notLanded: 0, open: 0 });
  expect(lost.runs()).toBe(1);
}

async function because(verify: Verifier<File, unknown>, mark = 'semel-mark'): Promise<unknown> {
  const ctx: VerifyContext = {
    key: 'k',
    keyFor: (part) => part,
    mark: () => mark,
    remoteRef: undefined,
    firstDispatchedAt: undefined,
    lastDispatchedAt: undefined,
    attempts: 1,
    signal: new AbortController().signal,
  };
  const answer = await verify(file, ctx);
  return answer.verdict === 'unsure' ? answer.because : answer.verdict;
}

const servers: { close(): void }[] = [];
afterAll(() => {
  for (const server of servers) server.close();
});

/** Keeps what is PUT, with its headers; HEAD and GET give it back. */
async function bucket() {
  const objects = new Map<string, { readonly mark: string; readonly body: string }>();
  const state = { status: undefined as number | undefined, missing: '{"error":"Not found"}' };
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (part) => {
      body += String(part);
    });
    request.on('end', () => {
      const path = decodeURIComponent(request.url ?? '');
      if (request.method === 'PUT')
        objects.set(path, { mark: String(request.headers['x-amz-meta-semel'] ?? ''), body });
      const found = objects.get(path);
      const headers = found === undefined ? {} : { 'x-amz-meta-semel': found.mark, etag: '"e1"' };
      response.writeHead(state.status ?? (found === undefined ? 404 : 200), {
        ...headers,
        ...(state.status === 429 ? { 'retry-after': '9' } : {}),
      });
      response.end(request.method === 'GET' ? (found?.body ?? state.missing) : undefined);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  servers.push(server);
  return { objects, state, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

describe('an S3 object', () => {
  async function s3() {
    const { objects, state, url } = await bucket();
    /** As the SDK: it throws with the status in `$metadata`. */
    const client = {
      async headObject({ Bucket, Key }: { Bucket: string; Key: string }) {
        const response = await fetch(`${url}/${Bucket}/${Key}`, { method: 'HEAD' });
        const $metadata = { httpStatusCode: response.status };
        if (!response.ok) throw Object.assign(new Error('UnknownError'), { name: 'NotFound', $metadata });
        const Metadata = { semel: response.headers.get('x-amz-meta-semel') ?? '' };
        return { ETag: response.headers.get('etag') ?? undefined, Metadata };
      },
    };
    const object = ({ name }: File) => ({ Bucket: 'b', Key: `${name}.csv` });
    const put = async ({ name }: File, { mark }: Pick<AttemptContext, 'mark'>) => {
      await fetch(`${url}/b/${name}.csv`, {
        method: 'PUT',
        body: 'x',
        headers: { 'x-amz-meta-semel': mark() },
      });
      return { key: `${name}.csv`, etag: '"e1"' };
    };
    return { objects, state, put, verify: verifyS3Object({ client, object }) };
  }

  test('is found by its mark; where there is none, it is written once', async () => {
    const { objects, put, verify } = await s3();
    await decides(put, verify, () => objects.clear());
  });

  test('that another call wrote is unsure, as is a refusal', async () => {
    const { objects, state, verify } = await s3();
    objects.set('/b/report.csv', { mark: 'semel-other', body: '' });
    expect(await because(verify)).toMatch(/b\/report.csv is there, but another call wrote it/);
    objects.clear();
    expect(await because(verify)).toBe('notLanded');
    state.status = 403;
    expect(await because(verify)).toMatch(/S3 answered 403/);
    state.status = 503;
    expect(await because(verify)).toMatch(/S3 answered 503/);
  });
});

describe('an npm version', () => {
  async function registry() {
    const { objects, state, url } = await bucket();
    const at = '/@ann%2fshop';
    const document = (version: object, time: object = {}) =>
      objects.set(decodeURIComponent(at), { mark: '', body: JSON.stringify({ versions: version, time }) });
    const publish = (_: File, { mark }: Pick<AttemptContext, 'mark'>) => {
      document({ '1.2.3': { semel: mark(), dist: { integrity: 'sha512-x' } } });
      return { name: '@ann/shop', version: '1.2.3' };
    };
    const target = { name: '@ann/shop', version: '1.2.3' };
    const verify = verifyNpmPublish({ registry: url, package: (_: File) => target });
    const byIntegrity = verifyNpmPublish({
      registry: `${url}/`,
      token: 't',
      package: (_: File) => ({ ...target, integrity: 'sha512-x' }),
    });
    const of = (version: string) =>
      verifyNpmPublish({ registry: url, package: (_: File) => ({ ...target, version }) });
    return { objects, state, document, publish, verify, byIntegrity, of };
  }

  test('is found by its mark; where there is none, it is published once', async () => {
    const { objects, publish, verify } = await registry();
    await decides(publish, verify, () => objects.clear());
  });

  test('is found by its integrity too', async () => {
    const { publish, byIntegrity } = await registry();
    publish(file, { mark: () => 'semel-whatever' });
    expect(await because(byIntegrity)).toBe('landed');
  });

  test('is found as npm publishes it', async () => {
    const { publish, verify, of } = await registry();
    publish(file, { mark: () => 'semel-mark' });
    for (const version of ['v1.2.3', '1.2.3+build.7', '=1.2.3'])
      expect(await because(of(version))).toBe('landed');
    expect(await because(of('1.2.30'))).toBe('notLanded');
    expect(await because(verify)).toBe('landed');
  });

  test('of somebody else, or that was taken back, is unsure', async () => {
    const { document, verify, byIntegrity, state } = await registry();
    document({ '1.2.3': { dist: { integrity: 'sha512-y' } } });
    expect(await because(verify)).toMatch(/@ann\/shop@1.2.3 is there, but not with our mark/);
    expect(await because(byIntegrity)).toMatch(/not with our integrity/);
    document({}, { '1.2.3': '2026-01-01' });
    expect(await because(verify)).toMatch(/was published and is not there any more/);
    document({ '1.2.2': {} });
    expect(await because(verify)).toBe('notLanded');
    state.status = 401;
    expect(await because(verify)).toMatch(/answered 401/);
    state.status = 429;
    expect(await because(verify)).toMatch(/limits the rate.*in 9 s/);
  });

  test('that a proxy has no registry for is unsure: its page is not the answer of a registry', async () => {
    const { verify, state } = await registry();
    expect(await because(verify)).toBe('notLanded');
    for (const page of ['default backend - 404', '<html></html>', '']) {
      state.missing = page;
      expect(await because(verify)).toMatch(/^The registry could not be asked: it answered 404, not as JSON/);
    }
  });
});

describe('a git push', () => {
  function repository() {
    const { folder } = newScratch('push');
    const [bare, clone] = [join(folder, 'bare.git'), join(folder, 'clone')];
    const git = (cwd: string, ...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=ann', '-c', 'user.email=ann@example.com', ...args], {
        cwd,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      }).trim();
    git(folder, 'init', '-q', '--bare', bare);
    git(folder, 'clone', '-q', bare, clone);
    const commit = (cwd: string, message: string) => {
      git(cwd, 'commit', '-q', '--allow-empty', '-m', message);
      return git(cwd, 'rev-parse', 'HEAD');
    };
    const ref = 'refs/heads/main';
    const base = commit(clone, 'base');
    git(clone, 'push', '-q', 'origin', `HEAD:${ref}`);
    const ours = commit(clone, 'ours');
    const push = () => {
      git(clone, 'push', '-q', 'origin', `${ours}:${ref}`);
      return { ref, commit: ours };
    };
    const verify = verifyGitPush({ cwd: clone, push: (_: File) => ({ ref, commit: ours }) });
    /** Somebody else's clone of what the remote has. */
    const other = () => {
      const theirs = newScratch('theirs').path('clone');
      git(folder, 'clone', '-q', '--branch', 'main', bare, theirs);
      return theirs;
    };
    return { git, bare, clone, ref, base, ours, push, verify, commit, other };
  }

  test('is found by its ref; where it did not arrive, it is made once', async () => {
    const { git, bare, ref, base, push, verify } = repository();
    await decides(push, verify, () => git(bare, 'update-ref', ref, base));
  });

  test('is found under what others pushed on top, which is not here yet; no ref of ours changes', async () => {
    const { git, clone, ref, push, verify, commit, other } = repository();
    push();
    const theirs = other();
    commit(theirs, 'on top');
    git(theirs, 'push', '-q', 'origin', `HEAD:${ref}`);
    const before = git(clone, 'for-each-ref');
    expect(await because(verify)).toBe('landed');
    expect(git(clone, 'for-each-ref')).toBe(before);
  });

  test('is looked for where it is pushed to, if that is not where others fetch from', async () => {
    const { git, bare, clone, push, verify } = repository();
    const pushed = newScratch('pushed').path('bare.git');
    git(clone, 'clone', '-q', '--bare', bare, pushed);
    git(clone, 'remote', 'set-url', '--push', 'origin', pushed);
    expect(await because(verify)).toBe('notLanded');
    push();
    expect(await because(verify)).toBe('landed');
    git(clone, 'remote', 'set-url', '--push', '--add', 'origin', bare);
    expect(await because(verify)).toBe('origin pushes to 2 addresses');
  });

  test('that went another way is unsure; a branch that is not there yet is not landed', async () => {
    const { git, bare, clone, ref, verify, commit, other, ours } = repository();
    const theirs = other();
    const elsewhere = commit(theirs, 'another way');
    git(theirs, 'push', '-q', 'origin', `HEAD:${ref}`);
    expect(await because(verify)).toContain(`is at ${elsewhere}, which neither has ${ours}`);
    git(bare, 'update-ref', '-d', ref);
    expect(await because(verify)).toBe('notLanded');
    const wrong = verifyGitPush({
      cwd: clone,
      push: (_: File) => ({ remote: 'nowhere', ref, commit: ours }),
    });
    expect(await because(wrong)).toMatch(/git could not be asked: git ls-remote: .*nowhere/);
  });

  /** A web server that answers everything with 200 and this text, or hands it to git. */
  async function webServer(answer: string | { readonly root: string }) {
    const server = createServer((request, response) => {
      if (typeof answer === 'string') {
        response.writeHead(200, { 'content-type': 'text/plain' }).end(answer);
        return;
      }
      const [path = '', query = ''] = (request.url ?? '').split('?');
      const env = {
        ...process.env,
        GIT_PROJECT_ROOT: answer.root,
        GIT_HTTP_EXPORT_ALL: '1',
        GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
        PATH_INFO: path,
        QUERY_STRING: query,
        REQUEST_METHOD: request.method,
        CONTENT_TYPE: request.headers['content-type'] ?? '',
      };
      const backend = spawn('git', ['http-backend'], { env, stdio: ['pipe', 'pipe', 'ignore'] });
      request.pipe(backend.stdin);
      const parts: Buffer[] = [];
      backend.stdout.on('data', (part) => parts.push(part));
      backend.on('close', () => {
        const all = Buffer.concat(parts);
        const end = all.indexOf('\r\n\r\n');
        for (const line of all.subarray(0, end).toString().split('\r\n')) {
          const [name = '', value = ''] = line.split(': ');
          if (name !== 'Status') response.setHeader(name, value);
        }
        response.end(all.subarray(end + 4));
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  test('over HTTP is decided by a git server only: an empty answer, or an old list, proves nothing', async () => {
    const { git, bare, clone, ref, base, ours } = repository();
    const asking = (remote: string) =>
      because(verifyGitPush({ cwd: clone, push: (_: File) => ({ remote, ref, commit: ours }) }));
    expect(await asking(`${await webServer('')}/x.git`)).toMatch(/does not answer as a git server/);
    expect(await asking(`${await webServer(`${base}\trefs/heads/other\n`)}/x.git`)).toMatch(
      /does not answer as a git server/,
    );
    expect(await asking(`${await webServer('<html></html>')}/x.git`)).toMatch(/does not answer as a git/);
    expect(await asking(`${await webServer(`${ours}\t${ref}\n`)}/x.git`)).toBe('landed');

    const real = `${await webServer({ root: dirname(bare) })}/bare.git`;
    expect(await asking(real)).toBe('notLanded');
    git(bare, 'update-ref', '-d', ref);
    expect(await asking(real)).toBe('notLanded');
  });

  test.each([
    ['an abbreviated commit', { commit: 'abc1234' }, /not the full id of a commit/],
    ['a short ref', { ref: 'main' }, /not a remote and the full name of a ref/],
    ['a remote that is an option', { remote: '--upload-pack=touch x' }, /not a remote/],
    ['a ref that is a refspec', { ref: 'refs/heads/a:refs/heads/b' }, /not a remote/],
  ])('%s is refused', async (_, given, expected) => {
    const push = () => ({ ref: 'refs/heads/main', commit: 'a'.repeat(40), ...given });
    expect(await because(verifyGitPush({ push }))).toMatch(expected);
  });
});
