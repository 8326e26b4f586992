// Behind a proxy that does TLS: only that proxy may connect, and only what reached it encrypted is answered.

import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, type Socket } from 'node:net';
import { SemelError } from '../../core/errors.ts';
import { Refusal } from '../exchange/reply.ts';

export interface Proxies {
  mayConnect(socket: Socket): boolean;
}

/** Addresses, or networks such as 10.0.0.0/8. Throws INVALID_ARGS. */
export function createProxies(addresses: readonly string[]): Proxies {
  const known = new BlockList();
  for (const text of addresses) {
    const [address = '', bits, ...more] = String(text).split('/');
    const version = isIP(address);
    const most = version === 4 ? 32 : 128;
    const isNetwork =
      bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) >= 1 && Number(bits) <= most);
    if (version === 0 || !isNetwork || more.length > 0)
      throw new SemelError('INVALID_ARGS', `${JSON.stringify(text)} is not the address of a proxy.`, {
        path: 'behindProxy',
        next: 'Pass its address, or its network: 10.1.2.3 or 10.0.0.0/8.',
      });
    const family = version === 4 ? 'ipv4' : 'ipv6';
    if (bits === undefined) known.addAddress(address, family);
    else known.addSubnet(address, Number(bits), family);
  }
  return {
    mayConnect({ remoteAddress = '' }) {
      const version = isIP(remoteAddress);
      return version !== 0 && known.check(remoteAddress, version === 4 ? 'ipv4' : 'ipv6');
    },
  };
}

/** The proxy says that a token came to it unencrypted. */
export function refuseUnencrypted({ headers }: IncomingMessage): void {
  const named = headers['x-forwarded-proto'];
  if (named === undefined) return;
  const all = String(named).split(',');
  if (all.every((protocol) => protocol.trim().toLowerCase() === 'https')) return;
  throw new Refusal(403, 'The proxy received this request without TLS.', 'Use https.');
}
