// Checks that a table is fit for a ledger, and creates it if it is missing. Refuses a table in which records can vanish, or
// in which two regions can both confirm a claim.

import type { Clock } from '../../core/clock.ts';
import { SemelError } from '../../core/errors.ts';
import { AwsError } from '../../store/aws/client.ts';
import type { Ask } from './requests.ts';

interface Table {
  readonly TableStatus?: string;
  readonly KeySchema?: readonly { readonly AttributeName: string; readonly KeyType: string }[];
  readonly AttributeDefinitions?: readonly {
    readonly AttributeName: string;
    readonly AttributeType: string;
  }[];
  readonly Replicas?: readonly unknown[];
  readonly MultiRegionConsistency?: string;
}

const schema = {
  KeySchema: [
    { AttributeName: 'p', KeyType: 'HASH' },
    { AttributeName: 'k', KeyType: 'RANGE' },
  ],
  AttributeDefinitions: [
    { AttributeName: 'p', AttributeType: 'S' },
    { AttributeName: 'k', AttributeType: 'S' },
  ],
};
/** The attributes of our items. */
const attributes = ['p', 'k', 'tag', 'text', 'part'];
const firstPauseMs = 10;
const longestPauseMs = 500;
const patienceMs = 60_000;

export async function openTable({
  ask,
  table,
  where,
  mayCreate,
  clock,
}: {
  readonly ask: Ask;
  readonly table: string;
  readonly where: string;
  readonly mayCreate: boolean;
  readonly clock: Clock;
}): Promise<void> {
  const startedAt = clock.mono();
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, 2 * pauseMs)) {
    const found = (await describe()) ?? (await create());
    if (found?.TableStatus === 'ACTIVE' || found?.TableStatus === 'UPDATING') {
      refuseUnfit(found);
      return refuseTimeToLive();
    }
    if (clock.mono() - startedAt > patienceMs)
      throw new SemelError('STORE_UNAVAILABLE', `${where} is not ready (${found?.TableStatus}).`, {
        next: 'Nothing was run. Call again when the table is active.',
      });
    await new Promise<void>((resolve) => clock.setTimeout(resolve, pauseMs));
  }

  async function describe(): Promise<Table | undefined> {
    try {
      return (await ask('DescribeTable', { TableName: table })).Table as Table;
    } catch (error) {
      if (isCode(error, 'ResourceNotFoundException')) return undefined;
      throw error;
    }
  }

  async function create(): Promise<Table | undefined> {
    if (!mayCreate)
      throw new SemelError('STORE_UNAVAILABLE', `There is no ${where}.`, {
        next: 'Nothing was run. Create it: partition key `p`, sort key `k`, both strings.',
        retriable: false,
      });
    try {
      await ask('CreateTable', { TableName: table, BillingMode: 'PAY_PER_REQUEST', ...schema });
    } catch (error) {
      // Another process creates it too.
      if (!isCode(error, 'ResourceInUseException')) throw error;
    }
    return undefined;
  }

  function refuseUnfit({ KeySchema, AttributeDefinitions, Replicas, MultiRegionConsistency }: Table): void {
    const isOurs =
      KeySchema?.length === 2 &&
      schema.KeySchema.every((key) =>
        KeySchema.some((one) => one.AttributeName === key.AttributeName && one.KeyType === key.KeyType),
      ) &&
      schema.AttributeDefinitions.every(({ AttributeName }) =>
        AttributeDefinitions?.some((one) => one.AttributeName === AttributeName && one.AttributeType === 'S'),
      );
    if (!isOurs)
      throw unsafe(
        `${where} was not made for a ledger: its keys are not \`p\` (partition) and \`k\` (sort), both strings.`,
        'Name another table; semel creates it.',
      );
    if ((Replicas?.length ?? 0) > 0 && MultiRegionConsistency !== 'STRONG')
      throw unsafe(
        `${where} is a global table: two regions can both confirm the claim of one key.`,
        'Use a table of one region, or one with strong consistency between regions (MRSC).',
      );
  }

  async function refuseTimeToLive(): Promise<void> {
    const { TimeToLiveDescription } = await ask('DescribeTimeToLive', { TableName: table });
    const { TimeToLiveStatus = '', AttributeName = '' } = (TimeToLiveDescription ?? {}) as Record<
      string,
      string
    >;
    if (TimeToLiveStatus.startsWith('ENABL') && attributes.includes(AttributeName))
      throw unsafe(
        `${where} deletes items by \`${AttributeName}\` (time to live), which is an attribute of the records.`,
        'Switch it off: semel removes expired records itself.',
      );
  }
}

function unsafe(happened: string, next: string): SemelError {
  return new SemelError('STORE_UNSAFE', happened, { next: `Nothing was run. ${next}` });
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof AwsError && error.code === code;
}
