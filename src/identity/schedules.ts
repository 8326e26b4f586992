// Identities from schedulers: the scheduled run. Never the clock: a late or repeated start is the same run.

import { SemelError } from '../core/errors.ts';
import { type HeadersLike, readHeader } from './headers.ts';
import { joinIds, optionalId, parseInstant, type RunIdentity, requireId, type TurnIdentity } from './ids.ts';
import type { StepOption } from './workflows.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** `matrix`: what tells the jobs of a matrix apart, for example `toJSON(matrix)`. The environment does not tell. */
export function fromGitHubActions(
  env: Environment,
  { matrix, step }: StepOption & { readonly matrix?: string } = {},
): TurnIdentity {
  const named = (name: string) =>
    requireId('github actions', name, env?.[name], 'Pass `process.env` of a step of a workflow.');
  // Each at its own place: the name of a step is not taken for that of a matrix.
  const inside = [optionalId('github actions', 'matrix', matrix), optionalId('github actions', 'step', step)];
  const parts = inside.some((part) => part !== undefined) ? inside.map((part) => part ?? '') : [];
  return {
    conversation: joinIds('github', named('GITHUB_REPOSITORY'), named('GITHUB_RUN_ID')),
    turn: joinIds('job', named('GITHUB_JOB'), ...parts),
  };
}

/** Authenticate the caller first: anyone who can send headers could choose the identity. */
export function fromCloudScheduler(headers: HeadersLike): RunIdentity {
  const hint = 'Pass the headers of the request that Cloud Scheduler made.';
  const named = (name: string) =>
    requireId('cloud scheduler', name, readHeader('cloud scheduler', headers, name), hint);
  const time = 'X-CloudScheduler-ScheduleTime';
  const at = parseInstant('cloud scheduler', time, named(time), hint);
  // The same instant may be written in two zones.
  return { run: joinIds('cloud-scheduler', named('X-CloudScheduler-JobName'), at.toISOString()), at };
}

export interface CronJobNames {
  /** The variable that holds the name of the Job. @default 'JOB_NAME' */
  readonly job?: string;
  /** The variable that holds the namespace. @default 'POD_NAMESPACE' */
  readonly namespace?: string;
}

/**
 * The Job that a CronJob made: its name ends with the scheduled minute, and all pods of the Job share it. The downward
 * API has it as the label `batch.kubernetes.io/job-name`. The name of a pod, which a retry changes, is refused.
 */
export function fromKubernetesCronJob(
  env: Environment,
  { job = 'JOB_NAME', namespace = 'POD_NAMESPACE' }: CronJobNames = {},
): RunIdentity {
  const hint = (field: string) => `Set it from the downward API: fieldPath: ${field}.`;
  const name = requireId(
    'kubernetes',
    job,
    env?.[job],
    hint("metadata.labels['batch.kubernetes.io/job-name']"),
  );
  const space = requireId('kubernetes', namespace, env?.[namespace], hint('metadata.namespace'));
  const minute = Number(/-(\d{8})$/.exec(name)?.[1]);
  if (!(minute >= firstMinute)) {
    throw new SemelError(
      'NO_IDENTITY',
      `kubernetes: \`${job}\` is ${JSON.stringify(name.slice(0, 80))}, which does not end with a scheduled minute.`,
      {
        path: job,
        next: 'Pass the name of a Job that a CronJob made, not that of a pod; a Job made by hand needs ids of your own.',
      },
    );
  }
  return { run: joinIds('kubernetes', space, name), at: new Date(minute * 60_000) };
}

/** 2020, in minutes since 1970: below it, eight digits are a date that somebody put into a name. */
const firstMinute = Date.UTC(2020) / 60_000;
