// An agent with a scripted model, in whatever framework: what a harness has to bring so that the adapter contract can be
// played on it.

import type { Semel } from '../../../src/semel/index.ts';

/** One call that the model makes. */
export interface ScriptedCall {
  readonly tool: 'refund' | 'mail' | 'search';
  readonly args: Readonly<Record<string, unknown>>;
}

/** What the model does, step by step: the calls of a step are made at once. After the last step it says that it is done. */
export type Script = readonly (readonly ScriptedCall[])[];

/** What the tools do in the world, bare. */
export type Effects = Readonly<
  Record<ScriptedCall['tool'], (args: Readonly<Record<string, unknown>>) => unknown>
>;

export interface AgentRun {
  readonly semel: Semel;
  /** To be made tools of the framework, and guarded with `contractPolicies`. */
  readonly effects: Effects;
  readonly script: Script;
  readonly signal?: AbortSignal;
  /** Called before the model answers, with how often it was asked. */
  readonly onStep?: (step: number) => void;
}

export interface AgentReport {
  /** What the program gets of each call, in the order of the script. */
  readonly outputs: readonly unknown[];
  /** All that the model was shown when it was last asked, as one text. */
  readonly prompt: string;
}

/** What a framework has no means for. */
export type Means = 'approval' | 'suspension' | 'guess';

export type Click = (work: () => Promise<unknown>) => Promise<unknown>;

export interface AdapterHarness {
  /** Runs the agent once, from its first message; each run gives its calls new tool_call_ids. */
  run(asked: AgentRun): Promise<AgentReport>;
  /**
   * The one call of the script needs an approval, which is submitted twice, as by two clicks: each as the work of a `click`.
   * The model names its call as models do, by an id that is long and random.
   */
  approveTwice?(asked: AgentRun, click: Click): Promise<void>;
  /** The one call of the script is suspended by its framework, after `effects` were asked; then it is resumed. */
  suspendAndResume?(asked: AgentRun): Promise<AgentReport>;
  /** Without `semel.within` the adapter guesses who asks. */
  readonly guesses: boolean;
  /** Why a means is not there. */
  readonly absent?: Partial<Record<Means, string>>;
}

export interface AdapterCase {
  readonly name: string;
  readonly needs?: Means;
  run(harness: AdapterHarness): Promise<void>;
}

/** Undefined: it can be played. */
export function whyAbsent({ needs }: AdapterCase, harness: AdapterHarness): string | undefined {
  const isThere =
    needs === undefined ||
    (needs === 'approval' && harness.approveTwice !== undefined) ||
    (needs === 'suspension' && harness.suspendAndResume !== undefined) ||
    (needs === 'guess' && harness.guesses);
  return isThere ? undefined : (harness.absent?.[needs] ?? `the harness has no ${needs}`);
}
