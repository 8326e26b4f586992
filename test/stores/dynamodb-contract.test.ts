// The DynamoDB store keeps the contract of all stores.
import { afterAll, beforeAll, describe, test } from 'vitest';
import { storeContract, whySkipped } from '../../src/testing/store-contract/index.ts';
import { type DynamodbServer, startDynamodb } from '../servers/dynamodb.ts';
import { cellHarness } from './cell-harness.ts';
import { type CellLedger, dynamodbLedger } from './cell-ledger.ts';

let server: DynamodbServer;
let ledger: CellLedger;

beforeAll(async () => {
  server = await startDynamodb();
  ledger = dynamodbLedger(server.endpoint);
});

afterAll(() => server.stop());

describe('the DynamoDB store keeps the contract', () => {
  for (const contractCase of storeContract()) {
    test(contractCase.name, async (context) => {
      const harness = cellHarness(ledger);
      const reason = whySkipped(contractCase, harness);
      if (reason !== undefined) context.skip(reason);
      await contractCase.run(harness);
    });
  }
});
