// Every engine: a redelivery is the same intent, a new run is another, and what changes from attempt to attempt is
// never asked for. The fixtures are what the engines give, with the fields that must not count among them.

import { isSemelError } from 'semel';
import { describe, expect, test } from 'vitest';
import {
  fromBullMQ,
  fromCloudScheduler,
  fromDbos,
  fromGitHubActions,
  fromInngest,
  fromKubernetesCronJob,
  fromQStash,
  fromRestate,
  fromSqs,
  fromTemporal,
  fromTrigger,
} from '../../src/identity/index.ts';
import type { Ambient } from '../../src/semel/index.ts';
import { quick } from '../library/support.ts';
import { fixture } from './fixture.ts';

interface Engine {
  readonly file: string;
  readonly read: (given: never) => Ambient;
  /** The fields that make the identity; each is missed. */
  readonly needs: readonly string[];
  /** What differs between deliveries, or may. */
  readonly never: readonly string[];
}

const engines: readonly Engine[] = [
  {
    file: 'temporal',
    read: fromTemporal,
    needs: ['workflowExecution.workflowId', 'workflowExecution.runId', 'activityId'],
    never: [
      'attempt',
      'taskToken',
      'base64TaskToken',
      'currentAttemptScheduledTimestampMs',
      'heartbeatDetails',
    ],
  },
  { file: 'inngest', read: fromInngest, needs: ['runId'], never: ['attempt', 'requestId'] },
  { file: 'restate', read: fromRestate, needs: ['id'], never: ['attemptHeaders'] },
  { file: 'dbos', read: fromDbos, needs: ['workflowID'], never: ['stepStatus', 'executorID'] },
  { file: 'trigger', read: fromTrigger, needs: ['run.id'], never: ['attempt'] },
  {
    file: 'bullmq',
    read: fromBullMQ,
    needs: ['queueName', 'id', 'timestamp', 'name'],
    never: ['attemptsMade', 'attemptsStarted', 'stalledCounter', 'token', 'processedOn'],
  },
  { file: 'sqs', read: fromSqs, needs: ['MessageId'], never: ['ReceiptHandle', 'Attributes'] },
  {
    file: 'github-actions',
    read: fromGitHubActions,
    needs: ['GITHUB_REPOSITORY', 'GITHUB_RUN_ID', 'GITHUB_JOB'],
    never: ['GITHUB_RUN_ATTEMPT', 'RUNNER_NAME'],
  },
  {
    file: 'qstash',
    read: fromQStash,
    needs: ['upstash-message-id'],
    never: ['upstash-retried', 'upstash-signature'],
  },
  {
    file: 'cloud-scheduler',
    read: fromCloudScheduler,
    needs: ['x-cloudscheduler-jobname', 'x-cloudscheduler-scheduletime'],
    never: ['authorization', 'x-cloud-trace-context'],
  },
  {
    file: 'kubernetes-cronjob',
    read: fromKubernetesCronJob,
    needs: ['JOB_NAME', 'POD_NAMESPACE'],
    never: ['POD_NAME', 'HOSTNAME'],
  },
];

/** A copy with one field replaced; `undefined` takes it away. */
function changed(given: object, path: string, value: unknown): never {
  const copy = structuredClone(given) as Record<string, unknown>;
  const steps = path.split('.');
  const last = steps.pop() as string;
  const place = steps.reduce((each, step) => each[step] as Record<string, unknown>, copy);
  if (value === undefined) delete place[last];
  else place[last] = value;
  return copy as never;
}

describe.each(engines)('$file', ({ file, read, needs, never }) => {
  const { first, redelivery, newRun }: Record<'first' | 'redelivery' | 'newRun', object> = fixture(file);
  const identity = read(first as never);

  test('a redelivery is the same intent', () => {
    expect(redelivery).not.toEqual(first);
    expect(read(redelivery as never)).toEqual(identity);
  });

  test('a new run is another', () => {
    expect(read(newRun as never)).not.toEqual(identity);
  });

  test.each(never)('%s is not part of it', (field) => {
    const isInBoth = field in first || field in redelivery;
    expect(isInBoth).toBe(true);
    expect(read(changed(first, field, 'something else'))).toEqual(identity);
    expect(read(changed(first, field, undefined))).toEqual(identity);
  });

  test.each(needs)('without %s there is none, and the error says what was expected', (field) => {
    for (const value of [undefined, '', ' ', {}]) {
      const error = thrownBy(() => read(changed(first, field, value)));
      expect(isSemelError(error, 'NO_IDENTITY')).toBe(true);
      expect(error.path?.toLowerCase()).toBe(field.toLowerCase());
      expect(error.message).toMatch(/Pass|Set|Call/);
    }
    expect(
      isSemelError(
        thrownBy(() => read(undefined as never)),
        'NO_IDENTITY',
      ),
    ).toBe(true);
  });

  test('it can be used in within as it is: two deliveries, one effect', async () => {
    const semel = quick();
    let ran = 0;
    const tool = semel.tool({
      name: 'post',
      effect: 'write-non-idempotent',
      per: 'run' in identity ? 'run' : 'turn',
      run: () => ++ran,
    });
    const deliver = (given: object) => semel.within(read(given as never), () => tool({}));
    expect([await deliver(first), await deliver(redelivery), await deliver(newRun)]).toEqual([1, 1, 2]);
    await semel.close();
  });
});

function thrownBy(work: () => unknown): Error & { path?: string } {
  try {
    work();
  } catch (error) {
    return error as Error;
  }
  throw new Error('nothing was thrown');
}
