// Which tools a server has, and what would hold for each.

import { spawn } from 'node:child_process';
import { lineReader } from './lines.ts';
import { fieldsOf, isReply, type ListedTool, parsed, toolsIn } from './messages.ts';
import { type PolicyFile, policyFor, type ToolPolicy } from './policies.ts';

export interface Inspected extends ToolPolicy {
  readonly tool: ListedTool;
}

/** Starts the server, asks for its tools, and ends it. */
export async function toolsOf(
  command: string,
  args: readonly string[],
  timeoutMs: number,
): Promise<readonly ListedTool[]> {
  const server = spawn(command, [...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting = new Map<unknown, (message: unknown) => void>();
  let fail: (error: Error) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failed.catch(() => undefined);
  const timer = setTimeout(
    () => fail(new Error(`The server did not answer in ${timeoutMs / 1000} s.`)),
    timeoutMs,
  );
  server.once('error', (error) => fail(error));
  server.once('close', (code) =>
    fail(new Error(`The server ended with ${code} before it listed its tools.`)),
  );
  server.stdin.on('error', () => undefined);
  const lines = lineReader((line) => {
    const message = parsed(line.toString());
    if (isReply(message)) waiting.get(message.id)?.(message);
  });
  server.stdout.on('data', lines.read);
  const send = (message: object) =>
    void server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  let ids = 0;
  const ask = (method: string, params: object): Promise<unknown> => {
    ids += 1;
    const id = ids;
    const answered = new Promise((resolve) => waiting.set(id, resolve));
    send({ id, method, params });
    return Promise.race([answered, failed]);
  };
  try {
    const greeting = await ask('initialize', {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'semel', version: '1' },
    });
    const { error } = fieldsOf(greeting);
    if (error !== undefined) throw new Error(`The server refused: ${fieldsOf(error).message}`);
    send({ method: 'notifications/initialized' });
    const tools: ListedTool[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = toolsIn(await ask('tools/list', cursor === undefined ? {} : { cursor }));
      tools.push(...page.tools);
      if (page.next === undefined) return tools;
      cursor = page.next;
    }
  } finally {
    clearTimeout(timer);
    server.stdin.end();
    server.kill();
  }
}

export function inspected(tools: readonly ListedTool[], file: PolicyFile): readonly Inspected[] {
  return tools.map((tool) => ({ tool, ...policyFor(tool, file) }));
}

/** A file to start from: what holds now, spelt out, with the fields of each tool to choose from. */
export function starterFile(tools: readonly ListedTool[]): PolicyFile {
  const named = tools.map((tool): [string, NonNullable<PolicyFile['tools']>[string]] => {
    const { policy } = policyFor(tool, { version: 1 });
    const effect = typeof policy === 'string' ? policy : policy.effect;
    if (effect === 'read' || effect === 'write-idempotent') return [tool.name, effect];
    const fields = Object.keys(fieldsOf(fieldsOf(tool.inputSchema).properties));
    const content = fields.filter((field) => wordy.test(field));
    return [tool.name, { effect, ...(content.length === 0 ? {} : { content }), errors: 'in-doubt' }];
  });
  return { version: 1, tools: Object.fromEntries(named) };
}

/** Fields that a model words anew: for a person to check. */
const wordy = /^(body|text|message|subject|description|comment|note|summary|reason|title|content)$/i;
