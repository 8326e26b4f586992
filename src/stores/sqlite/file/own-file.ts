// The ledger's own file, without its log. The system drops all locks that a process has on a file when it closes any handle
// of it: so each file is opened once per process, and closed when no store uses it any more.

import { closeSync, fstatSync, openSync, statSync } from 'node:fs';
import { bytesAt, metaPage, writesIn } from './meta-page.ts';

export interface OwnFile {
  /** How many writes it knows of; 0 where it does not say. */
  writes(): number;
  /** Once SQLite has closed it. */
  close(): void;
}

interface Shared {
  readonly file: number;
  users: number;
}

/** One for all copies of semel in this process. */
const name = Symbol.for('semel.sqlite.files');
const registry = globalThis as unknown as Record<symbol, Map<string, Shared> | undefined>;

export function openOwnFile(path: string): OwnFile {
  registry[name] ??= new Map();
  const files = registry[name];
  const shared = files.get(nameOf(statSync(path))) ?? open();
  shared.users += 1;
  let isOpen = true;

  return {
    writes() {
      const header = bytesAt(shared.file, 0, 18);
      const size = header?.readUInt16BE(16) ?? 0;
      const pageSize = size === 1 ? 65_536 : size;
      if (pageSize < 512) return 0;
      const read = () => bytesAt(shared.file, (metaPage - 1) * pageSize, pageSize);
      // Twice the same: another process may be writing it.
      for (let page = read(); page !== undefined; ) {
        const again = read();
        if (again?.equals(page)) return writesIn(page) ?? 0;
        page = again;
      }
      return 0;
    },
    close() {
      if (!isOpen) return;
      isOpen = false;
      shared.users -= 1;
      if (shared.users > 0) return;
      files.delete(nameOf(fstatSync(shared.file)));
      closeSync(shared.file);
    },
  };

  function open(): Shared {
    const file = openSync(path, 'r');
    // Somebody may have exchanged it since it was looked at.
    const known = files.get(nameOf(fstatSync(file)));
    const opened = known ?? { file, users: 0 };
    files.set(nameOf(fstatSync(file)), opened);
    return opened;
  }
}

function nameOf({ dev, ino }: { dev: number; ino: number }): string {
  return `${dev}:${ino}`;
}
