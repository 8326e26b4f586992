// Random histories of calls with steps: processes die inside a step or between two, replies are lost, targets refuse, callers
// and sweeps come back, releases rename steps. Whatever happens, no step lands twice and no success is told without its steps.

import { type AttemptContext, landed, MaybeLanded, NotLanded, notLanded, Rejected } from 'semel';
import { expect, test } from 'vitest';
import { chanceOf } from '../processes/chance.ts';
import { mortal, rest, rig } from './support.ts';

const histories = Number(process.env.SEMEL_STEP_HISTORIES ?? 60);

const forever = () => new Promise<never>(() => undefined);

async function play(seed: number): Promise<string[]> {
  const chance = chanceOf(seed);
  const { store, clock, another } = rig();
  const landedSteps: string[] = [];
  const violations: string[] = [];
  const steps = ['charge', 'mail', 'ship'].slice(0, chance.pick([2, 3]));
  const kinds = new Map(steps.map((step) => [step, chance.pick(['bare', 'verify', 'keyed', 'fetchless'])]));
  const isStepsOnly = chance.is(0.7);
  const hasPrepare = chance.is(0.2);
  const tries = chance.pick([1, 1, 2]);
  const effect = chance.pick(['write-non-idempotent', 'irreversible'] as const);
  const seenKeys = new Map<string, string>();
  let isCalm = false;

  function start(isRenamed: boolean) {
    const life = { isDead: false };
    const semel = another({ store: mortal(store, life) });
    const work = (name: string) => async (ctx: AttemptContext) => {
      const fate = isCalm
        ? 'lands'
        : chance.pick([
            'lands',
            'lands',
            'lands',
            'no answer',
            'not landed',
            'refused',
            'dies before',
            'dies after',
            'lost',
          ]);
      if (fate === 'dies before' || fate === 'dies after') life.isDead = true;
      if (fate === 'not landed') throw new NotLanded('turned away');
      if (fate === 'refused') throw new Rejected('refused');
      if (fate === 'dies before') return forever();
      if (fate === 'lost') throw new MaybeLanded('lost on the way');
      const isRepeat = kinds.get(name) === 'keyed' && seenKeys.get(name) === ctx.key;
      if (!isRepeat) landedSteps.push(name);
      if (kinds.get(name) === 'keyed') seenKeys.set(name, ctx.key);
      if (fate === 'dies after') return forever();
      if (fate === 'no answer') throw new Error('timed out');
      return name;
    };
    const options = (name: string) => ({
      timeout: '20s' as const,
      lease: '10s' as const,
      ...(kinds.get(name) === 'verify'
        ? { verify: () => (landedSteps.includes(name) ? landed(name) : notLanded()) }
        : {}),
      ...(kinds.get(name) === 'keyed'
        ? { provider: { name: 'shop', window: '30d', sentBy: 'tool' } as const }
        : {}),
    });
    const order = semel.tool({
      ...{ name: isRenamed ? 'order.new' : 'order', effect, per: 'ever' as const, window: '30d' as const },
      ...(isRenamed ? { was: [{ name: 'order' }] } : {}),
      ...(isStepsOnly ? { via: 'steps' as const } : {}),
      ...(hasPrepare ? { prepare: () => ({ words: 'as prepared' }) } : {}),
      ...{ timeout: '5m' as const, lease: '10s' as const, retry: { tries, backoff: '1s' as const } },
      async run(_: { id: number }, ctx: AttemptContext<never>) {
        const taken: string[] = [];
        const take = (name: string) => {
          const stepName = isRenamed ? `${name}-now` : name;
          const was = isRenamed ? { was: name } : {};
          return ctx.step(stepName, { ...options(name), ...was }, work(name) as never);
        };
        if (chance.is(0.2)) taken.push(...((await Promise.all(steps.map(take))) as string[]));
        else for (const name of steps) taken.push((await take(name)) as string);
        if (!isCalm && chance.is(0.08)) {
          life.isDead = true;
          return forever();
        }
        if (!isCalm && chance.is(0.08))
          throw chance.pick([new Error('after'), new NotLanded('wrong word'), new Rejected('wrong word')]);
        return taken;
      },
    } as never) as unknown as {
      try(args: {
        id: number;
      }): Promise<{ ok: boolean; value?: string[]; error?: { code: string; message: string } }>;
    };
    return { semel, life, order };
  }

  async function ask(isRenamed: boolean): Promise<void> {
    const { semel, life, order } = start(isRenamed);
    let told: Awaited<ReturnType<typeof order.try>> | undefined;
    const asked =
      chance.is(0.75) || isCalm ? order.try({ id: 1 }) : semel.doubts.sweep().then(() => undefined);
    void asked.then(
      (result) => {
        told = result ?? undefined;
      },
      (error: unknown) => {
        // What a dead process is told is nobody's concern.
        if (!life.isDead) violations.push(`threw ${String(error)}`);
      },
    );
    for (let waited = 0; waited < 400 && told === undefined && !life.isDead; waited += 1)
      await clock.advance(1_000);
    await rest();
    if (told?.ok === true && !life.isDead && steps.some((step) => !landedSteps.includes(step)))
      violations.push(`told as done without ${steps.filter((step) => !landedSteps.includes(step)).join()}`);
    const isDefinite = told?.error?.code === 'NOT_LANDED' || told?.error?.code === 'FAILED';
    if (isDefinite && landedSteps.length > 0)
      violations.push(`told as ${told?.error?.code}: ${told?.error?.message}`);
    life.isDead = true;
  }

  const deployedAt = chance.pick([0, 2, 3, 99]);
  for (let nth = 0; nth < 6; nth += 1) {
    isCalm = nth >= 4;
    await ask(nth >= deployedAt || (nth >= deployedAt - 1 && chance.is(0.5)));
    if (chance.is(0.4)) await clock.advance(chance.pick([5_000, 40_000, 700_000]));
  }
  for (const step of steps) {
    const count = landedSteps.filter((each) => each === step).length;
    if (count > 1) violations.push(`${step} (${kinds.get(step)}) landed ${count} times`);
  }
  return violations.map((each) => `seed ${seed}: ${each}`);
}

test('no step lands twice, and nothing is reported as done without its steps', async () => {
  const first = Number(process.env.SEMEL_STEP_SEED ?? 1);
  const violations: string[] = [];
  for (let seed = first; seed < first + histories; seed += 1) violations.push(...(await play(seed)));
  expect(violations).toEqual([]);
});
