// What each engine lets a caller choose, and how ids become texts.

import { describe, expect, test } from 'vitest';
import {
  fromBullMQ,
  fromCloudScheduler,
  fromDbos,
  fromGitHubActions,
  fromInngest,
  fromKubernetesCronJob,
  fromQStash,
  fromSqs,
  fromTemporal,
} from '../../src/identity/index.ts';
import { fixture } from './fixture.ts';

const first = (file: string) => fixture(file).first;

test('temporal, across the workflow: continue-as-new is the same intent, another workflow is not', () => {
  const { first, newRun, other } = fixture('temporal');
  const across = { across: 'workflow' } as const;
  expect(fromTemporal(newRun, across)).toEqual(fromTemporal(first, across));
  expect(fromTemporal(newRun)).not.toEqual(fromTemporal(first));
  expect(fromTemporal(other!, across)).not.toEqual(fromTemporal(first, across));
  expect(fromTemporal(first, across)).toEqual({
    conversation: 'temporal:default/invoice-2041',
    turn: 'sendInvoice',
  });
});

test('temporal: an activity that no workflow started has no identity here, and older SDKs are read too', () => {
  const { workflowExecution, namespace, ...rest } = fixture('temporal').first as Record<string, unknown>;
  expect(() => fromTemporal(rest as never)).toThrow(/workflowExecution\.workflowId.*missing.*own ids/);
  expect(fromTemporal({ workflowExecution, ...rest } as never)).toEqual(fromTemporal(first('temporal')));
});

test('inngest: the caller names the step; all runs of an event are one', () => {
  const { first, newRun } = fixture('inngest');
  expect(fromInngest(first, { step: 'mail' }).turn).toBe('mail');
  expect(fromInngest(newRun, { across: 'event' })).toEqual(fromInngest(first, { across: 'event' }));
  expect(() => fromInngest({ runId: 'r' }, { across: 'event' })).toThrow(/event\.id/);
});

test('dbos: a step is a turn, the first one too; outside of steps the workflow is', () => {
  expect(fromDbos({ workflowID: 'w', stepID: 0 })).toEqual({ conversation: 'dbos:w', turn: '0' });
  expect(fromDbos({ workflowID: 'w' })).toEqual({ conversation: 'dbos:w', turn: 'dbos:w' });
});

test('sqs: a message is the same to the SDK and to Lambda', () => {
  const { first, lambda } = fixture('sqs');
  expect(fromSqs(lambda!)).toEqual(fromSqs(first));
});

test('github actions: matrix jobs must be distinguished, and are not steps', () => {
  const env = first('github-actions');
  const turns = [
    fromGitHubActions(env),
    fromGitHubActions(env, { matrix: 'x' }),
    fromGitHubActions(env, { step: 'x' }),
    fromGitHubActions(env, { matrix: 'x', step: 'x' }),
  ].map(({ turn }) => turn);
  expect(new Set(turns).size).toBe(4);
});

describe('schedules', () => {
  test('cloud scheduler: one instant in two zones is one run', () => {
    const utc = {
      ...(first('cloud-scheduler') as object),
      'x-cloudscheduler-scheduletime': '2026-11-16T17:00:00Z',
    };
    expect(fromCloudScheduler(utc)).toEqual(fromCloudScheduler(first('cloud-scheduler')));
    expect(fromCloudScheduler(utc).at).toEqual(new Date('2026-11-16T17:00:00Z'));
    const bad = { ...utc, 'x-cloudscheduler-scheduletime': 'soon' };
    expect(() => fromCloudScheduler(bad)).toThrow(/"soon", which is not a valid time/);
  });

  test('kubernetes: the scheduled minute is in the name of the Job', () => {
    expect(fromKubernetesCronJob(first('kubernetes-cronjob')).at).toEqual(new Date('2026-11-16T09:00:00Z'));
  });

  test.each(['weekly-digest-29913660-x7k2p', 'weekly-digest-29913660-12345', 'by-hand', 'by-hand-20261116'])(
    'kubernetes: %s is not a Job of a CronJob',
    (name) => {
      expect(() => fromKubernetesCronJob({ JOB_NAME: name, POD_NAMESPACE: 'shop' })).toThrow(
        /does not end with a scheduled minute.*not that of a pod/,
      );
    },
  );

  test('kubernetes: the variables may have other names', () => {
    const env = { JOB: 'digest-29913660', NS: 'shop' };
    expect(fromKubernetesCronJob(env, { job: 'JOB', namespace: 'NS' }).run).toBe(
      'kubernetes:shop/digest-29913660',
    );
  });
});

describe('texts', () => {
  const job = { id: '1', name: 'n', queueName: 'q', timestamp: 1 };

  test('no two lists of ids are one text', () => {
    const a = fromBullMQ({ ...job, queueName: 'a/b', id: 'c' });
    const b = fromBullMQ({ ...job, queueName: 'a', id: 'b/c' });
    expect(a.conversation).not.toBe(b.conversation);
  });

  test('one that was cut is never the same as a whole one', () => {
    const of = (id: string) => fromSqs({ MessageId: id }).conversation;
    const cut = of('x'.repeat(1_000));
    expect(of(cut.slice('sqs:'.length))).not.toBe(cut);
  });

  test('a long one is truncated and made unique by a digest', () => {
    const long = (end: string) => fromBullMQ({ ...job, id: `${'x'.repeat(2_000)}${end}` }).conversation;
    expect(long('1').length).toBeLessThanOrEqual(400);
    expect(long('1')).not.toBe(long('2'));
    expect(long('1')).toBe(long('1'));
  });

  test('an empty step is a slip, not a wish for none', () => {
    expect(() => fromBullMQ(job, { step: '' })).toThrow(/`step` is ""/);
  });

  test('half of a surrogate pair is not an id', () => {
    expect(() => fromBullMQ({ ...job, id: '\ud800' })).toThrow(/`id` is/);
  });

  test('headers are found in any case, and refused if sent twice', () => {
    const { conversation } = fromQStash(new Headers({ 'Upstash-Message-Id': 'm' }));
    expect(fromQStash({ 'UPSTASH-MESSAGE-ID': ['m'] }).conversation).toBe(conversation);
    expect(() => fromQStash({ 'upstash-message-id': ['m', 'n'] })).toThrow(/more than once/);
  });
});
