// A thread of this process uses the ledger too, and ends; then says which locks the process had on the file before and after.
import { readFileSync, statSync } from 'node:fs';
import { isMainThread, Worker } from 'node:worker_threads';
import Database from 'better-sqlite3';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { take } from '../../src/testing/store-contract/attempt.ts';

const [path = '', ends = '', library = ''] = process.argv.slice(2);
const store = sqliteStore(library === 'node:sqlite' ? { path } : { database: new Database(path) });
await (await take(store, { key: `mail.send/=${isMainThread}` })).succeed('1');

if (isMainThread) {
  const before = locks();
  const thread = new Worker(new URL(import.meta.url), { argv: [path, ends, library] });
  await new Promise((resolve) => thread.once('exit', resolve));
  process.stdout.write(JSON.stringify({ before, after: locks() }));
} else if (ends === 'closed') await store.close();
else process.exit(0);

function locks(): readonly string[] {
  const ours = new RegExp(` (\\w+) ${process.pid} \\S+:${statSync(path).ino} (.*)$`);
  return readFileSync('/proc/locks', 'utf8')
    .split('\n')
    .flatMap((line) => ours.exec(line)?.slice(1).join(' ') ?? []);
}
