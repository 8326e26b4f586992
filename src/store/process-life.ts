// Whether the process that holds a claim is dead. The owner of a claim ends with a mark of the kernel's boot and of the process id
// namespace in which its process id counts. Only "no such process", in that same boot and namespace, proves a death. No clock,
// start time or host name is trusted. Everything that cannot be proven counts as alive: then the lease decides.

import { hash } from 'node:crypto';
import { readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { isMainThread } from 'node:worker_threads';
import { bootId } from './boot.ts';

/** How this process is named in its claims, and what it knows about the processes that hold others. */
export interface Life {
  /** For people; nobody can prove that it is dead. */
  readonly owner: string;
  /** For claims that end when this process does. */
  readonly provableOwner: string;
  /** For claims whose effects only this process sends: nothing that it started can send after its death. */
  readonly loneOwner: string;
  /** True: the process of this owner is gone, for good. */
  isDead(owner: string): boolean;
}

/** `isLocal`: whether all processes that use the ledger run on this kernel. */
export function lifeOf(given: string | undefined, isLocal: () => boolean): Life {
  // Several processes may have the same name from their user, and a thread can end without its process.
  const place = given === undefined && isMainThread ? thisPlace() : undefined;
  const owner = given === undefined ? `${hostname()}:${process.pid}` : withoutMark(given);
  return {
    owner,
    provableOwner: place === undefined ? owner : `${owner}~${place}`,
    loneOwner: place === undefined ? owner : `${owner}~${place}.alone`,
    isDead: (other) => isLocal() && isProcessGone(other),
  };
}

/** True: the process is gone. False: it lives, or nobody can know from here. */
export function isProcessGone(owner: string): boolean {
  const [, pid, place] = marked.exec(owner) ?? [];
  if (pid === undefined || place !== thisPlace()) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    // EPERM is a live process of another user. A zombie and a stopped process can be signalled too.
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

/** Nothing else could send its requests: they end with the process. */
export function sendsAlone(owner: string): boolean {
  return marked.exec(owner)?.[3] !== undefined;
}

/** For people. */
export function withoutMark(owner: string): string {
  return owner.replace(/~[0-9a-f]{12}(\.alone)?$/, '');
}

const marked = /:([1-9][0-9]*)~([0-9a-f]{12})(\.alone)?$/;

let place: { readonly mark: string | undefined } | undefined;

/**
 * Where a process id means the same process as here: this boot, this namespace. The number of a namespace is reused only once
 * all its processes are gone, so an owner from an earlier one is dead too.
 */
function thisPlace(): string | undefined {
  place ??= { mark: readPlace() };
  return place.mark;
}

function readPlace(): string | undefined {
  if (process.platform !== 'linux') return undefined;
  const boot = bootId();
  if (boot === undefined || boot === '') return undefined;
  try {
    return markOf(boot, readlinkSync('/proc/self/ns/pid'));
  } catch {
    // A sandbox may hide it.
    return undefined;
  }
}

/** Short, since every record has it. */
export function markOf(boot: string, pidNamespace: string): string {
  return hash('sha256', `${boot} ${pidNamespace}`).slice(0, 12);
}
