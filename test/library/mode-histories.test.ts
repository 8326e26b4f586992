// Random histories of one call in programs that observe and programs that enforce, as during a rollout: effects fail, answers are lost,
// processes die, sweeps come. An observed call repeats its effect, as before semel. An enforced one never does, and never says
// that it is done, or free, where that is not so.

import { type AttemptContext, landed, MaybeLanded, NotLanded, notLanded, type VerifyContext } from 'semel';
import { expect, test } from 'vitest';
import { chanceOf } from '../processes/chance.ts';
import { mortal, rest, rig } from './support.ts';

const histories = Number(process.env.SEMEL_MODE_HISTORIES ?? 300);

const forever = () => new Promise<never>(() => undefined);

const provider = { name: 'psp', window: '30d', sentBy: 'tool' } as const;

async function play(seed: number): Promise<string[]> {
  const { pick, is: happens } = chanceOf(seed);
  const { store, clock, another } = rig();
  const isKeyed = happens(0.4);
  const form = pick(['whole', 'whole', 'steps', 'steps only', 'explicit', 'verified'] as const);
  const hasSteps = form === 'steps' || form === 'steps only';
  const parts = hasSteps ? ['charge', 'ship', ...(form === 'steps' ? ['whole'] : [])] : ['whole'];
  const effects: { readonly part: string; readonly key: string; readonly mark: string }[] = [];
  const log: string[] = [];
  const violations: string[] = [];
  /** A target that honours keys makes one effect of those with one key. */
  const count = (part: string) => {
    const made = effects.filter((effect) => effect.part === part);
    return isKeyed ? new Set(made.map(({ key }) => key)).size : made.length;
  };
  const violate = (what: string) => violations.push(`seed ${seed}: ${what}\n${log.join('\n')}`);

  function start(mode: 'observe' | 'enforce') {
    const life = { isDead: false, onDeath: () => {} };
    const died = new Promise<void>((resolve) => {
      life.onDeath = resolve;
    });
    const semel = another({ mode, store: mortal(store, life) });
    const act = async (part: string, ctx: AttemptContext) => {
      const fate = pick([
        'lands',
        'lands',
        'lands',
        'answer lost',
        'fails',
        'not landed',
        'maybe',
        'dies',
        'dies after',
      ]);
      log.push(`    ${mode}: ${part} ${fate}`);
      if (
        fate === 'lands' ||
        fate === 'answer lost' ||
        fate === 'dies after' ||
        (fate === 'maybe' && happens(0.5))
      ) {
        const before = count(part);
        effects.push({ part, key: ctx.key, mark: ctx.mark() });
        if (mode === 'enforce' && before > 0 && count(part) > before) violate(`${part} landed again`);
      }
      if (fate === 'lands') return part;
      if (fate === 'not landed') throw new NotLanded('refused for now');
      if (fate === 'maybe') throw new MaybeLanded('nobody knows');
      if (fate !== 'dies' && fate !== 'dies after') throw new Error('socket hang up');
      life.isDead = true;
      life.onDeath();
      return forever();
    };
    const tool = semel.tool({
      ...({ name: 'order', effect: 'irreversible', per: 'ever' } as const),
      ...(isKeyed && form !== 'steps only' && { provider }),
      ...(form === 'steps only' && { via: 'steps' as const }),
      ...(form === 'explicit' && { dispatch: 'explicit' as const }),
      ...(form === 'verified' && {
        verify(_: { id: number }, ctx: VerifyContext) {
          return effects.some(({ mark }) => mark === ctx.mark()) ? landed('whole') : notLanded();
        },
      }),
      async run(_: { id: number }, ctx) {
        if (form === 'explicit') {
          if (happens(0.2)) throw new Error('out of stock');
          await ctx.dispatch();
        }
        for (const part of parts.filter((each) => each !== 'whole'))
          await (isKeyed
            ? ctx.step(part, { provider }, (inner) => act(part, inner))
            : ctx.step(part, (inner) => act(part, inner)));
        return parts.includes('whole') ? act('whole', ctx) : 'done';
      },
    });
    return { semel, tool, died };
  }

  for (let calls = 0; calls < 6; calls += 1) {
    const mode = pick(['observe', 'enforce'] as const);
    const { semel, tool, died } = start(mode);
    if (mode === 'enforce' && happens(0.2)) {
      log.push('  sweep');
      await clock.until(Promise.race([semel.doubts.sweep(), died]));
    }
    log.push(`  call, ${mode}`);
    const result = await clock.until(Promise.race([tool.try({ id: 1 }), died]));
    log.push(`  ${result === undefined ? 'died' : result.ok ? 'done' : result.error.code}`);
    if (mode === 'enforce' && result !== undefined) {
      const isFree = !result.ok && (result.error.code === 'NOT_LANDED' || result.error.code === 'FAILED');
      if (result.ok && parts.some((part) => count(part) === 0)) violate('told done, and it is not');
      if (isFree && parts.some((part) => count(part) > 0))
        violate(`told ${result.error.code}, and it landed`);
    }
    // An observed call beside one that seems to run leaves no record.
    if (result === undefined || happens(0.5))
      await clock.advance(result === undefined ? 900_000 : pick([1_000, 120_000, 900_000]));
    if (result !== undefined) await semel.close();
    await rest();
  }
  return violations;
}

test('a call that some programs observe and others enforce lands at most once by those that enforce it', async () => {
  const violations: string[] = [];
  for (let seed = 1; seed <= histories && violations.length < 3; seed += 1)
    violations.push(...(await play(seed)));
  expect(violations).toEqual([]);
}, 600_000);
