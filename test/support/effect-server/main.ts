// The effect server as a process of its own: node main.ts [--port 0] [--log effects.jsonl] [--targets '{…}']
// Prints one line of JSON once it listens. With --with-parent it ends when its standard input does.

import { mkdtempSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openEffectLog } from './effect-log.ts';
import { createEffectServer } from './server.ts';
import { type Target, targetOf } from './target.ts';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    log: { type: 'string' },
    targets: { type: 'string', default: '{}' },
    'with-parent': { type: 'boolean', default: false },
  },
});

const path = values.log ?? join(mkdtempSync(join(tmpdir(), 'semel-effects-')), 'effects.jsonl');
const log = openEffectLog(path);
const given = JSON.parse(values.targets) as Record<string, Partial<Target>>;
const targets = Object.fromEntries(Object.entries(given).map(([name, over]) => [name, targetOf(over)]));
const server = createEffectServer(log, targets);

server.listen(Number(values.port), '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}`, log: path, pid: process.pid }));
});

function stop(): void {
  server.close();
  server.closeAllConnections();
  log.close();
  process.exit(0);
}

process.on('SIGTERM', stop);
process.on('SIGINT', stop);
if (values['with-parent']) process.stdin.on('end', stop).resume();
