// `semel ui`: the dashboard of a ledger in a browser. It serves the page from this process, under a token that nobody else has,
// and logs the browser in by a link that works once.

import { spawn } from 'node:child_process';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { SemelError } from '../../core/errors.ts';
import { digestToken, makeToken, startServer } from '../../server/index.ts';
import { makeFolder } from '../../store/files.ts';
import { defaultPath } from '../../stores/sqlite/index.ts';
import { mustBeOperator } from '../caller.ts';
import { command } from '../command.ts';
import { choice, text, toggle } from '../flags.ts';
import { storeFor } from '../ledger.ts';
import { readPackageFile } from '../package-file.ts';
import { complain, print, printAside } from '../render/print.ts';
import { usageError } from '../usage.ts';

const roles = ['read', 'admin'] as const;

export default command({
  name: 'ui',
  takes: '[options]',
  about: `Serves the dashboard of the ledger on a free port of this machine until you press Ctrl-C, and logs the browser in with a link
that works once. With --url, opens the dashboard of a server that runs already, with the token in SEMEL_TOKEN.`,
  flags: {
    url: text('<address>', 'a server that runs already, as `semel serve` printed it'),
    port: text('<port>', 'the port (default: any that is free)'),
    role: choice(roles, 'read: look only (default: admin)'),
    'no-open': toggle('print the link, and open no browser'),
  },
  examples: [
    'semel ui',
    'semel ui --role read --no-open',
    'semel ui --store postgres://db.example.com/ledger',
  ],
  async run({ values, positionals }) {
    if (positionals.length > 0) throw usageError('ui', 'it takes options only');
    mustBeOperator('ui', 'Opening the dashboard');
    const { url, port = '0', role = 'admin' } = values;
    if (url !== undefined) {
      if (values.port !== undefined || values.role !== undefined || values.store !== undefined)
        throw usageError('ui', '--url excludes --port, --role and --store', 'The server has its own.');
      const opened = show(await linkTo(checkedUrl(url), givenToken()), values['no-open'] === true);
      // The browser needs a moment to read the file.
      await new Promise((resolve) => setTimeout(resolve, opened.path === undefined ? 0 : 10_000));
      opened.clear();
      return 0;
    }
    if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) throw usageError('ui', '--port takes 0 to 65535');
    const token = makeToken();
    const server = await startServer({
      store: await storeFor(values, { make: true }),
      policies: { version: 1 },
      mayDefine: false,
      // The history shows who decided.
      tokens: [{ name: 'semel ui', role, namespace: '*', sha256: digestToken(token) }],
      listen: { host: '127.0.0.1', port: Number(port) },
      version: (JSON.parse(readPackageFile('package.json')) as { readonly version: string }).version,
      onWarning: complain,
    });
    const opened = show(await linkTo(server.url, token), values['no-open'] === true);
    printAside('semel: press Ctrl-C to end');
    await new Promise<void>((resolve) => {
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
    });
    opened.clear();
    await server.close(2_000);
    return 0;
  },
});

function checkedUrl(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const isHere = parsed !== undefined && /^(127(\.\d+){3}|localhost|\[::1\])$/.test(parsed.hostname);
  if (parsed?.protocol === 'https:' || (parsed?.protocol === 'http:' && isHere)) return parsed.origin;
  throw usageError(
    'ui',
    '--url is not https://…, or http:// on this machine',
    'A token would be read on its way.',
  );
}

function givenToken(): string {
  const { SEMEL_TOKEN: token } = process.env;
  if (token !== undefined && token !== '') return token;
  throw usageError('ui', '--url needs the token of that server in SEMEL_TOKEN');
}

/** The code is in the fragment, which a browser sends to nobody. */
async function linkTo(url: string, token: string): Promise<string> {
  const response = await fetch(`${url}/v1/logins`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: '{}',
    redirect: 'error',
  });
  const { code, detail } = (await response.json()) as { readonly code?: string; readonly detail?: string };
  if (response.ok) {
    // It gets into a page of this user's.
    if (/^[\w-]{20,200}$/.test(code ?? '')) return `${url}/#login=${code}`;
    throw new SemelError('NOT_PERMITTED', `${url} did not answer with a code for a login.`, {
      next: 'Check --url: it may be another program.',
    });
  }
  throw new SemelError('NOT_PERMITTED', `${url} refused to log in: ${detail ?? response.status}`, {
    next: 'Check SEMEL_TOKEN.',
  });
}

interface Opened {
  readonly path?: string;
  clear(): void;
}

/**
 * Other users of the machine can read the arguments of a process, so that the browser gets a file of this user that leads on, not
 * the link.
 */
function show(link: string, isPrintOnly: boolean): Opened {
  print(link);
  const [program, ...words] = opener();
  if (isPrintOnly || program === undefined) {
    printAside('semel: open this link in a browser; it works once, within five minutes');
    return { clear: () => undefined };
  }
  const folder = dirname(defaultPath());
  const path = join(folder, `ui-${process.pid}.html`);
  const clear = () => rmSync(path, { force: true });
  makeFolder(folder);
  clear();
  const file = openSync(path, 'wx', 0o600);
  try {
    writeSync(
      file,
      `<!doctype html><meta http-equiv="refresh" content="0; url=${link}"><title>semel</title>\n`,
    );
  } finally {
    closeSync(file);
  }
  const child = spawn(program, [...words, pathToFileURL(path).href], { stdio: 'ignore', detached: true });
  child.on('error', () => printAside('semel: no browser could be opened; use the link'));
  child.unref();
  return { path, clear };
}

/** Empty: there is no screen. */
function opener(): readonly string[] {
  const { DISPLAY, WAYLAND_DISPLAY, BROWSER } = process.env;
  if (process.platform === 'darwin') return ['open'];
  if (process.platform === 'win32') return ['cmd', '/c', 'start', '""'];
  if ((DISPLAY ?? WAYLAND_DISPLAY ?? '') === '') return [];
  return BROWSER !== undefined && /^[\w/.-]+$/.test(BROWSER) ? [BROWSER] : ['xdg-open'];
}
