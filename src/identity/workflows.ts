// Identities from durable engines: the run, and the step inside it. Never an attempt: a retry would be a new intent.

import { joinIds, optionalId, requireId, shortenId, type TurnIdentity } from './ids.ts';

export interface StepOption {
  /** Names the step. Without it the engine's own step is the turn, or else the whole run. */
  readonly step?: string;
}

/** `activityInfo()`, or `Context.current().info`. */
export interface TemporalInfo {
  readonly workflowExecution?: { readonly workflowId: string; readonly runId: string } | undefined;
  readonly activityId: string;
  readonly activityType?: string | undefined;
  readonly namespace?: string | undefined;
  /** What older SDKs call `namespace`. */
  readonly workflowNamespace?: string | undefined;
}

/**
 * `across: 'run'`: an activity of one run of a workflow. `across: 'workflow'`: the same activity with the same args is
 * one intent through retries, resets and continue-as-new of the workflow; its id is not used, since it is unique in
 * one run only.
 */
export function fromTemporal(
  info: TemporalInfo,
  { across = 'run', step }: StepOption & { readonly across?: 'run' | 'workflow' } = {},
): TurnIdentity {
  const namespace = named(
    'namespace',
    info?.namespace ?? info?.workflowNamespace,
    'Pass `activityInfo()` as it is.',
  );
  const inWorkflow = 'Pass `activityInfo()` of an activity that a workflow started; else name your own ids.';
  const workflow = named('workflowExecution.workflowId', info.workflowExecution?.workflowId, inWorkflow);
  const given = optionalId('temporal', 'step', step);
  if (across === 'workflow') {
    const type = () => named('activityType', info.activityType, 'Pass `activityInfo()`, or `step`.');
    return { conversation: joinIds('temporal', namespace, workflow), turn: given ?? type() };
  }
  const run = named('workflowExecution.runId', info.workflowExecution?.runId, inWorkflow);
  const activity = () => named('activityId', info.activityId, 'Pass `activityInfo()` as it is.');
  return { conversation: joinIds('temporal', namespace, workflow, run), turn: given ?? activity() };

  function named(path: string, value: unknown, hint: string): string {
    return shortenId(requireId('temporal', path, value, hint));
  }
}

/** What an Inngest function gets. */
export interface InngestContext {
  readonly runId: string;
  readonly event?: { readonly id?: string | undefined; readonly name?: string | undefined } | undefined;
}

/** Inngest does not tell the body of `step.run` its id: pass it. `across: 'event'` is one intent for all runs of an event. */
export function fromInngest(
  context: InngestContext,
  { across = 'run', step }: StepOption & { readonly across?: 'run' | 'event' } = {},
): TurnIdentity {
  const id =
    across === 'event'
      ? requireId(
          'inngest',
          'event.id',
          context?.event?.id,
          "Send the event with an `id`, or use across: 'run'.",
        )
      : requireId('inngest', 'runId', context?.runId, 'Pass what the Inngest function got.');
  const conversation = joinIds(across === 'event' ? 'inngest-event' : 'inngest', id);
  return { conversation, turn: optionalId('inngest', 'step', step) ?? conversation };
}

/** `ctx.request()` of a Restate handler. */
export interface RestateRequest {
  readonly id: string;
}

export function fromRestate(request: RestateRequest, { step }: StepOption = {}): TurnIdentity {
  const conversation = joinIds(
    'restate',
    requireId('restate', 'id', request?.id, 'Pass `ctx.request()` of the handler.'),
  );
  return { conversation, turn: optionalId('restate', 'step', step) ?? conversation };
}

/** The class `DBOS` itself: it knows where it is called. */
export interface DbosPlace {
  readonly workflowID?: string | undefined;
  readonly stepID?: number | undefined;
}

export function fromDbos(place: DbosPlace, { step }: StepOption = {}): TurnIdentity {
  const hint = 'Call it inside a workflow or a step, with `DBOS` itself.';
  const conversation = joinIds('dbos', requireId('dbos', 'workflowID', place?.workflowID, hint));
  const own = place.stepID === undefined ? conversation : requireId('dbos', 'stepID', place.stepID, hint);
  return { conversation, turn: optionalId('dbos', 'step', step) ?? own };
}

/** The `ctx` of a Trigger.dev task. */
export interface TriggerContext {
  readonly run: { readonly id: string };
}

/** A replay from the dashboard has a run id of its own: it is a new intent. */
export function fromTrigger(context: TriggerContext, { step }: StepOption = {}): TurnIdentity {
  const hint = 'Pass the `ctx` that `run` of the task got.';
  const conversation = joinIds('trigger', requireId('trigger.dev', 'run.id', context?.run?.id, hint));
  return { conversation, turn: optionalId('trigger.dev', 'step', step) ?? conversation };
}
