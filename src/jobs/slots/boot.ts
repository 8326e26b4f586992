// `@reboot`: one slot per boot of this machine. The boot id tells boots apart; the host name tells apart containers, which share
// the boot of their host. No instant is part of it: a wall clock that is corrected after the start must not make a new slot.

import { hostname, uptime } from 'node:os';
import { SemelError } from '../../core/errors.ts';
import { bootId } from '../../store/boot.ts';

export interface Boot {
  /** Undefined if the kernel has none. */
  readonly id: string | undefined;
  readonly host: string;
  /** By the wall clock, so only about. */
  readonly at: number;
}

export function thisBoot(now: number): Boot {
  return { id: bootId(), host: hostname(), at: now - uptime() * 1000 };
}

export function isReboot(cron: string): boolean {
  return cron.trim().toLowerCase() === '@reboot';
}

/** `web1-boot-48cf568e`, and what distinguishes it from all others. */
export function bootSlot({ id, host }: Boot): { readonly name: string; readonly start: string } {
  if (id === undefined || id === '')
    throw new SemelError('INVALID_ARGS', '@reboot needs a boot id, and this machine shows none.', {
      path: 'cron',
      next: 'Use --per ever with an --id that changes with each boot.',
    });
  const machine = host.replace(/[^A-Za-z0-9.-]+/g, '-');
  return { name: `${machine}-boot-${id.slice(0, 8).toLowerCase()}`, start: `${id} ${host}` };
}

/** Whether two such slots belong to one machine. */
export function isSameMachine(name: string, other: string): boolean {
  return machineIn(name) === machineIn(other);
}

function machineIn(name: string): string {
  return name.replace(/-boot-[^-]*$/, '');
}
