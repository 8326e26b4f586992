// The S3 store keeps the contract of all stores.
import { afterAll, beforeAll, describe, test } from 'vitest';
import { storeContract, whySkipped } from '../../src/testing/store-contract/index.ts';
import { type S3Server, startS3 } from '../servers/s3.ts';
import { cellHarness } from './cell-harness.ts';
import { type CellLedger, s3Ledger } from './cell-ledger.ts';

let server: S3Server;
let ledger: CellLedger;

beforeAll(async () => {
  server = await startS3();
  ledger = s3Ledger(server);
});

afterAll(() => server.stop());

describe('the S3 store keeps the contract', () => {
  for (const contractCase of storeContract()) {
    test(contractCase.name, async (context) => {
      const harness = cellHarness(ledger);
      const reason = whySkipped(contractCase, harness);
      if (reason !== undefined) context.skip(reason);
      await contractCase.run(harness);
    });
  }
});
