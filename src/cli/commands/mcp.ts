// `semel mcp`: a proxy in front of any MCP server, so that its tools land once. Options and messages only; the work is in
// src/mcp.

import { writeFileSync } from 'node:fs';
import { digestEnvironment } from '../../core/caller.ts';
import type { Per } from '../../core/contract/period.ts';
import { SemelError } from '../../core/errors.ts';
import { limits } from '../../core/limits.ts';
import { isReserved } from '../../jobs/index.ts';
import {
  createServerEnv,
  createStarterFile,
  createToolCalls,
  findUnknownNames,
  inspectTools,
  listCommandTools,
  listHttpTools,
  type PolicyFile,
  proxyHttp,
  proxyStdio,
  readPolicyFile,
  serverName,
  Unauthorized,
  workingFolder,
} from '../../mcp/index.ts';
import type { Ambient } from '../../semel/index.ts';
import { flagReader, maxTimerMs } from '../args/flag-values.ts';
import { smallText } from '../args/input.ts';
import { command, type ValuesOf } from '../command.ts';
import { text, texts, toggle } from '../flags.ts';
import { ledgerFor } from '../ledger.ts';
import { complain, printAside, printable, printJson, printRows } from '../render/print.ts';
import { table } from '../render/table.ts';
import { usageError } from '../usage.ts';

const flags = {
  policy: text('<file>', "policy of each tool (default: from the tools' hints)"),
  name: text('<name>', "the server's name in the ledger (default: from its command)"),
  conversation: text('<id>', 'conversation for calls that do not name one'),
  turn: text('<id>', 'turn for calls that do not name one; needs --conversation'),
  http: text('<url>', "the server's URL, for streamable HTTP"),
  listen: text('<port>', 'with --http: listen on this local port, or on <host>:<port>'),
  'allow-origin': texts('<origin>', 'with --listen: allow web pages of this origin'),
  'verified-tokens': toggle("with --listen: tokens are verified upstream, so a JWT's subject is the caller"),
  grace: text('<duration>', 'how long to wait for running calls when the client leaves (default: 30s)'),
  env: texts('<name>', "pass this variable to the server, even if it is one of semel's own secrets"),
  inspect: toggle('list the tools and their policies, and exit'),
  write: text('<file>', 'with --inspect: write a first policy file'),
} as const;

export default command({
  name: 'mcp',
  takes: '[options] -- <server command>',
  about: `Sits between any MCP client and any MCP server. A repeated tools/call is answered from the ledger; one that may have landed is
held; everything else passes. Tools that say readOnlyHint pass; those that say idempotentHint always run; all others run
once for the same arguments in a turn. If nothing names the turn, the model is asked before an equal call runs again
within ten minutes; it answers with the tool semel_run_again, which the proxy adds. With --listen, callers send
SEMEL_MCP_TOKEN, where it is set, as the header Semel-Token. The exit code is the server's.`,
  flags,
  examples: [
    'semel mcp -- npx -y @modelcontextprotocol/server-memory',
    'semel mcp --inspect --write semel.policy.json -- npx -y my-server',
    'semel mcp --policy semel.policy.json --conversation support-7 -- npx -y my-server',
    'semel mcp --http https://mcp.example.com/mcp --listen 8970',
    'semel mcp --inspect --http https://mcp.example.com/mcp',
  ],
  async run({ values, positionals, rest }) {
    if (positionals.length > 0)
      throw usageError('mcp', `unexpected ${positionals[0]}: the server's command goes after \`--\``);
    const policies =
      values.policy === undefined
        ? noPolicies
        : readPolicyFile(smallText('mcp', values.policy), values.policy);
    const [program, ...args] = rest ?? [];
    if (values.inspect === true) return inspect(program, args, policies, values);
    if (values.write !== undefined) throw usageError('mcp', '--write needs --inspect');
    if ((program === undefined) === (values.http === undefined))
      throw usageError('mcp', 'expects a server: its command after `--`, or --http <url>');
    const identity = identityOf(values);
    const graceMs = flagReader('mcp', values).duration('grace', 30_000, { to: maxTimerMs });
    if (values.name !== undefined && isReserved(`${values.name}.`))
      throw usageError(
        'mcp',
        '--name must not begin with run., lock., step., pick. or step-order.',
        'Choose another name.',
      );
    const server = values.name ?? serverName(values.http ?? program ?? '', args, workingFolder());
    const semel = ledgerFor(values, {
      make: true,
      onWarning: warnings(),
      // Every call reads its record first, since others may have let it be done again: a cache would only cost memory.
      cache: false,
      limits: { argsBytes: limits.messageBytes },
    });
    try {
      // Reports an unreadable hand-off in the environment now, not at every call.
      semel.within({}, () => undefined);
      const calls = createToolCalls({ semel, server, policies, onUnknownName: complain });
      if (program === undefined) return await serveHttp(values, identity, calls, graceMs);
      // A client that has gone does not end its running calls.
      process.stdout.removeAllListeners('error');
      const env = envFor(values);
      const caller = { scope: 'stdio', account: digestEnvironment(env), identity };
      const { stdin: input, stdout: output } = process;
      return await proxyStdio({
        command: program,
        args,
        env,
        calls,
        caller,
        input,
        output,
        graceMs,
      }).catch((error: NodeJS.ErrnoException) => {
        if (error.syscall?.startsWith('spawn') !== true) throw error;
        complain(`${program} could not be started: ${error.message}`);
        return error.code === 'ENOENT' ? 127 : 126;
      });
    } finally {
      process.stdin.pause();
      await semel.close();
    }
  },
});

const noPolicies: PolicyFile = { version: 1 };

type Values = ValuesOf<typeof flags> & {
  readonly json: boolean | undefined;
  readonly store: string | undefined;
};

async function serveHttp(
  values: Values,
  identity: Ambient,
  calls: ReturnType<typeof createToolCalls>,
  graceMs: number,
): Promise<number> {
  const { listen } = values;
  const upstream = urlOf(values);
  const [, host = '127.0.0.1', port] = /^(?:(.+):)?(\d{1,5})$/.exec(listen ?? '') ?? [];
  if (port === undefined) throw usageError('mcp', '--http needs --listen <port>');
  const token = tokenFor(host, upstream);
  const proxy = await proxyHttp({
    upstream,
    host: host.replace(/^\[|\]$/g, ''),
    port: Number(port),
    calls,
    identity,
    token,
    origins: (values['allow-origin'] ?? []).map(originOf),
    verifiedTokens: values['verified-tokens'] === true,
    graceMs,
  });
  printAside(`semel: listening on ${proxy.url}`);
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
  });
  await proxy.close();
  return 0;
}

/** The ledger's address and its password are not for the server. */
function envFor({ env: passed = [], store }: Values): NodeJS.ProcessEnv {
  return createServerEnv(process.env, { store: store ?? process.env.SEMEL_STORE ?? '', passed });
}

/** A caller is answered from the ledger too, without the server being asked who it is; and with the operator's credentials. */
function tokenFor(host: string, { username, password, search }: URL): string | undefined {
  const { SEMEL_MCP_TOKEN: token } = process.env;
  const isHere = /^(127(\.\d+){3}|localhost|\[?::1\]?)$/.test(host);
  const next =
    'Set SEMEL_MCP_TOKEN to a long random text, and let clients send it as the header Semel-Token.';
  if (!isHere && !token) throw usageError('mcp', `other machines could reach ${host}`, next);
  if (!token && `${username}${password}${search}` !== '')
    throw usageError('mcp', 'every program on this machine could use the credentials in --http', next);
  if (token && token.length < 16)
    throw usageError('mcp', 'SEMEL_MCP_TOKEN is shorter than 16 characters', next);
  return token || undefined;
}

async function inspect(
  program: string | undefined,
  args: readonly string[],
  policies: PolicyFile,
  values: Values,
): Promise<number> {
  const { write, json, http } = values;
  if ((program === undefined) === (http === undefined))
    throw usageError('mcp', '--inspect needs the server: a command after `--`, or --http <url>');
  const { SEMEL_MCP_AUTHORIZATION: authorization } = process.env;
  const asking =
    program === undefined
      ? listHttpTools(urlOf(values), authorization, inspectTimeoutMs)
      : listCommandTools(program, args, inspectTimeoutMs, envFor(values));
  const tools = await asking.catch((error: Error) => {
    throw new SemelError('FAILED', `${program ?? placeOf(values)} could not be queried: ${error.message}`, {
      next:
        error instanceof Unauthorized
          ? 'Set SEMEL_MCP_AUTHORIZATION to the value of the `Authorization` header.'
          : program === undefined
            ? 'Check that it is running, and that this is the URL clients use.'
            : 'Start it by hand to see what is wrong.',
    });
  });
  const rows = inspectTools(tools, policies);
  if (json === true)
    printJson(rows.map(({ tool, policy, errors, source }) => ({ tool: tool.name, policy, errors, source })));
  else {
    printRows(
      ...table(
        [
          { name: 'tool', min: 24 },
          'effect',
          { name: 'because of', min: 12, leaveOut: 1 },
          'per',
          { name: 'after an error', min: 12, leaveOut: 2 },
        ],
        rows.map(({ tool, policy, errors, source }) => {
          const terms = typeof policy === 'string' ? { effect: policy } : policy;
          const per = 'per' in terms && terms.per !== undefined ? perText(terms.per) : 'turn';
          const isRemembered = terms.effect !== 'read' && terms.effect !== 'write-idempotent';
          return [
            tool.name,
            terms.effect,
            reasons[source],
            ...(isRemembered ? [per, afterErrors[errors]] : ['-', '-']),
          ];
        }),
      ),
    );
    printAside(
      'semel: If a call does not name its turn, semel asks the model before an equal call runs again; it answers with the tool ' +
        'semel_run_again, which semel adds.',
    );
  }
  const strangers = findUnknownNames(policies, tools);
  for (const sentence of strangers) complain(sentence);
  if (write === undefined) return strangers.length === 0 ? 0 : 1;
  // Names are the server's: none of them may look like another one to the person who reads the file.
  const lines = JSON.stringify(createStarterFile(tools), null, 2).split('\n').map(printable);
  const text = `${lines.join('\n')}\n`;
  try {
    writeFileSync(write, text, { flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw usageError('mcp', `${write} exists, and is not overwritten`);
  }
  printAside(`semel: wrote ${write}: check each tool, then use it with --policy.`);
  return 0;
}

/** A server may be installed first. */
const inspectTimeoutMs = 60_000;

function urlOf({ http = '' }: Values): URL {
  if (!URL.canParse(http) || !/^https?:$/.test(new URL(http).protocol))
    throw usageError('mcp', '--http takes an http or https URL');
  return new URL(http);
}

/** As browsers write it: a slash at its end would never match. */
function originOf(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return new URL(text).origin;
  throw usageError('mcp', `--allow-origin takes an origin, for example https://app.example.com`);
}

/** Without the parts that only the server may know. */
function placeOf(values: Values): string {
  const { origin, pathname } = urlOf(values);
  return `${origin}${pathname}`;
}

function perText(per: Per): string {
  return typeof per === 'object' ? `${per.unit} in ${per.zone}` : String(per);
}

const afterErrors = {
  ask: 'asks the model',
  'in-doubt': 'held for a person',
  refused: 'refused',
  'not-landed': 'runs again',
} as const;

const reasons = {
  file: 'the policy file',
  readOnlyHint: 'its readOnlyHint',
  idempotentHint: 'its idempotentHint',
  default: 'no hint: assumed unsafe',
} as const;

function identityOf({ conversation, turn }: Values): Ambient {
  if (conversation === undefined && turn !== undefined)
    throw usageError('mcp', '--turn needs --conversation');
  return { ...(conversation === undefined ? {} : { conversation }), ...(turn === undefined ? {} : { turn }) };
}

/** Says what a library would advise in terms of a proxy. That turns are guessed is usual, so it is said once, not per tool. */
function warnings(): (warning: string) => void {
  let hasGuessed = false;
  return (warning) => {
    const [happened, advice] = warning.split(' Wrap the call in ');
    const [setter, isSetter] = warning.split(' looks as if it sets a value.');
    if (warning.includes('the turn was guessed')) {
      if (!hasGuessed)
        complain(
          'the client does not say which turn a call belongs to (most do not). If the same call comes again within the `weakWindow` (ten minutes by default), ' +
            'semel asks the model before running it. A client of your own can send dev.semel/conversation and dev.semel/turn in _meta.',
        );
      hasGuessed = true;
    } else if (isSetter !== undefined)
      complain(
        `${setter} looks as if it sets a value. If running it twice does no more than running it once, declare it "write-idempotent" in the policy file: every call then runs. ` +
          'Otherwise an equal call in the same turn counts as a retry; if the turn is a guess, semel asks the model.',
      );
    else if (advice === undefined) complain(warning);
    else
      complain(
        `${happened} Let the client send dev.semel/conversation and dev.semel/turn in _meta, or bound it by another ` +
          '`per` in the policy file: "ever", or { "day": "Europe/Paris" }.',
      );
  };
}
