// The rows of the table, as data: what is done to a tool, and what must come of it.

import type { Contract } from '../../core/contract/contract.ts';
import { realPause } from './instance.ts';
import type { Scene } from './scene.ts';

export interface Row {
  readonly name: string;
  /** `replays`: the first call runs, the others answer. `settles`: a fault is played. `runs`: the last call must run too. */
  readonly expects: 'replays' | 'settles' | 'runs';
  /** Omitted from the table if it does not apply to the tool. */
  readonly appliesTo?: (contract: Contract) => boolean;
  /** Why it cannot be played. */
  readonly lacks?: (scene: Scene, usesFetch: boolean) => string | undefined;
  readonly play: (scene: Scene) => Promise<void>;
}

/** The last moment at which semel would still send the provider the same key again. */
export const lateRetry = "retried late in the provider's window";

const yearMs = 366 * 86_400_000;
const atOnce = 50;
const processes = 5;

export const rows: readonly Row[] = [
  {
    name: 'three in a row',
    expects: 'replays',
    async play(scene) {
      const instance = scene.instance();
      await scene.call(instance);
      await aMoment(scene);
      await scene.call(instance);
      await scene.call(instance);
    },
  },
  {
    name: `${atOnce} at once`,
    expects: 'replays',
    async play(scene) {
      const instances = Array.from({ length: processes }, () => scene.instance());
      await Promise.all(
        Array.from({ length: atOnce }, (_, index) =>
          scene.call(instances[index % processes] ?? scene.instance()),
        ),
      );
    },
  },
  {
    name: 'throws after the effect',
    expects: 'settles',
    async play(scene) {
      scene.faults.throwAfterRun = true;
      await threeCalls(scene);
    },
  },
  {
    name: 'reply lost inside run',
    expects: 'settles',
    lacks: ({ subject }, usesFetch) =>
      usesFetch || subject.options.loseReply !== undefined
        ? undefined
        : '`run` uses no fetch: pass `loseReply`',
    async play(scene) {
      const { loseReply } = scene.subject.options;
      if (loseReply === undefined) scene.line.loseNext = true;
      else await loseReply();
      await threeCalls(scene);
    },
  },
  {
    name: 'killed after the effect, retried',
    expects: 'settles',
    async play(scene) {
      await scene.call(scene.mortal());
      await scene.call(scene.instance());
      await scene.call(scene.instance());
    },
  },
  {
    name: lateRetry,
    expects: 'settles',
    appliesTo: ({ provider, rerunWithinMs }) => provider !== undefined && rerunWithinMs !== null,
    lacks: ({ subject }) =>
      subject.options.advanceTime === undefined
        ? "pass `advanceTime`, which moves your fake's clock"
        : undefined,
    // Only the fake's clock moves: now and then, semel's answer to the doubt is to send the same key again.
    async play(scene) {
      const { contract, options } = scene.subject;
      await scene.call(scene.mortal());
      await options.advanceTime?.(Math.min(contract.rerunWithinMs ?? 0, yearMs));
      await scene.call(scene.instance());
      await scene.call(scene.instance());
    },
  },
  {
    name: 'new instance, empty cache',
    expects: 'replays',
    async play(scene) {
      await scene.call(scene.instance());
      await scene.call(scene.instance());
    },
  },
  {
    name: 're-worded content',
    expects: 'replays',
    lacks: ({ subject }) => (subject.options.reword === undefined ? 'pass `reword`' : undefined),
    async play(scene) {
      const instance = scene.instance();
      const { args } = await scene.call(instance);
      await scene.call(instance, scene.subject.options.reword?.(args));
    },
  },
  {
    name: 'other args must run',
    expects: 'runs',
    lacks: ({ subject }) => (subject.options.otherArgs === undefined ? 'pass `otherArgs`' : undefined),
    async play(scene) {
      const instance = scene.instance();
      const { otherArgs } = scene.subject.options;
      const { args } = await scene.call(instance);
      await scene.mark();
      await scene.call(instance, typeof otherArgs === 'function' ? otherArgs(args) : otherArgs);
    },
  },
];

async function threeCalls(scene: Scene): Promise<void> {
  const instance = scene.instance();
  for (let calls = 0; calls < 3; calls += 1) await scene.call(instance);
}

/** Long enough for a time stamp to be another one; where the args are made per call, also one of whole seconds. */
async function aMoment({ subject }: Scene): Promise<void> {
  const ms = subject.madePerCall ? 1_010 - (Date.now() % 1_000) : 5;
  await realPause(ms);
}
