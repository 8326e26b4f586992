// A server by hand, over standard input and output: it does as the name of the tool says, writes down every byte that it
// gets, and appends its effects to a file. Its folder is its first argument.

import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2] as string;
const path = (name: string) => join(folder, name);
const gate = async (name: string) => {
  // A test that is over has taken the folder away.
  while (!existsSync(path(name)) && existsSync(folder))
    await new Promise((resolve) => setTimeout(resolve, 10));
};
const act = (args: unknown) => appendFileSync(path('effects'), `${JSON.stringify(args)}\n`);
const write = (text: string) => process.stdout.write(text);
const text = (words: string, more: object = {}) => ({ content: [{ type: 'text', text: words }], ...more });

interface Call {
  id: number | string;
  method?: string;
  params: {
    name: string;
    arguments?: Record<string, unknown>;
    inputResponses?: unknown;
    requestState?: string;
    _meta?: Record<string, unknown>;
  };
}

let done = 0;
let isChanged = false;

async function result({ params }: Call): Promise<object> {
  const { name, arguments: args = {}, inputResponses, requestState, _meta } = params;
  switch (name) {
    case 'act':
      done += 1;
      act(args);
      return text(`done ${done}`, { structuredContent: { n: done, of: args } });
    case 'act-then-wait':
      act(args);
      await gate('gate');
      return text('done');
    case 'keyed': {
      const key = String(_meta?.['dev.semel/idempotency-key'] ?? args.idempotency_key);
      const isKnown = existsSync(path('keys')) && readFileSync(path('keys'), 'utf8').includes(key);
      appendFileSync(path('keys'), `${key}\n`);
      if (isKnown) return text('as before');
      act(args);
      await gate('gate');
      return text('done');
    }
    case 'wait-then-act':
      appendFileSync(path('arrived'), 'x\n');
      await gate('gate');
      act(args);
      return text('done');
    case 'fail':
      act(args);
      return text('it broke', { isError: true });
    case 'die':
      act(args);
      process.exit(3);
      break;
    case 'ask':
      if (inputResponses === undefined)
        return { resultType: 'input_required', inputRequests: { q: {} }, requestState: 's1' };
      act({ ...args, inputResponses, requestState });
      return text('confirmed', { resultType: 'complete' });
    case 'task':
      act(args);
      return { task: { taskId: `t-${Math.random()}`, status: 'working' } };
    case 'peek':
    case 'put':
      act(args);
      return text(name);
    case 'large':
      act(args);
      return text('x'.repeat(2 * 1024 * 1024));
    default:
      return text(`no tool ${name}`, { isError: true });
  }
  return {};
}

async function answer(line: string): Promise<void> {
  const call = JSON.parse(line) as Call;
  const { id, method, params } = call;
  if (method === 'tools/list') {
    appendFileSync(path('listed'), 'x\n');
    const names = [
      'act',
      'act-then-wait',
      'wait-then-act',
      'fail',
      'die',
      'ask',
      'task',
      'error',
      'odd',
      'large',
    ];
    const tools = [
      ...names.map((name) => ({ name, inputSchema: { type: 'object' } })),
      { name: 'peek', inputSchema: { type: 'object' }, annotations: { readOnlyHint: !isChanged } },
      { name: 'put', inputSchema: { type: 'object' }, annotations: { idempotentHint: true } },
    ];
    write(`${JSON.stringify({ jsonrpc: '2.0', id, result: { tools } })}\n`);
  } else if (method === 'tools/call') {
    if (params.name === 'error') {
      const error = { code: params.arguments?.code, message: 'as it was asked' };
      write(`${JSON.stringify({ jsonrpc: '2.0', id, error })}\n`);
    } else if (params.name === 'odd') {
      act(params.arguments);
      write(
        `{ "id":${id},  "result" : {"z":1.0,"content":[ ],"n":12345678901234567890,"u":"\\u00e9\\/"},"jsonrpc":"2.0" }\r\n`,
      );
    } else {
      write(`${JSON.stringify({ jsonrpc: '2.0', id, result: await result(call) })}\n`);
      if (params.name === 'act-then-wait' && existsSync(folder)) appendFileSync(path('answered'), 'x\n');
    }
  } else if (method === 'odd') {
    write(
      `{ "id":${id},  "result" : {"z":1.0,"a":[ ],"n":12345678901234567890,"u":"\\u00e9\\/"},"jsonrpc":"2.0" }\r\n`,
    );
    write('not JSON at all\n');
    write('{"method":"notifications/odd" ,"params":{ "b":1 ,"a":2 },"jsonrpc":"2.0"}\n');
  } else if (method === 'initialize') {
    const result = {
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 'fake', version: '1' },
    };
    write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
  } else if (method === 'exit') process.exit(Number((params as unknown as { code: number }).code));
  else if (method === 'change') {
    isChanged = true;
    write('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n');
  } else if (method === 'stderr') process.stderr.write('words of the server\n');
  else if (method === 'ping') write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{}}\n`);
}

let rest = '';
process.stdin.on('data', (chunk: Buffer) => {
  appendFileSync(path('received'), chunk);
  rest += chunk.toString();
  for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
    const line = rest.slice(0, end);
    rest = rest.slice(end + 1);
    if (line.trim() !== '') void answer(line);
  }
});
if (process.argv[3] === 'goes') process.stdin.on('end', () => process.exit());
if (process.argv[3] === 'stays') setInterval(() => existsSync(folder) || process.exit(), 1000);
process.on('SIGTERM', () => process.exit(42));
