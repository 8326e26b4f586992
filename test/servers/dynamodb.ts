// A DynamoDB for tests: dynalite, in this process and in memory. Its conditional writes are real; it does not check
// signatures, does not throttle, and its reads are always consistent.

import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import dynalite from 'dynalite';

export interface DynamodbServer extends AsyncDisposable {
  /** `http://127.0.0.1:…` */
  readonly endpoint: string;
  stop(): Promise<void>;
}

export const testCredentials = { accessKeyId: 'AKIATEST', secretAccessKey: 'secret' } as const;
export const testRegion = 'eu-central-1';

export async function startDynamodb(): Promise<DynamodbServer> {
  const server: Server = dynalite({ createTableMs: 0, deleteTableMs: 0 });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stop = () =>
    new Promise<void>((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    });
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
