// A thousand callers of one key at the same moment, in four processes: one effect, one answer, and hardly a question
// to the store.
import { describe, expect, inject, test } from 'vitest';
import { startLedger, storeNames } from '../crash/storm/ledger.ts';
import { startNode } from '../processes/node-process.ts';
import { newScratch } from '../processes/scratch.ts';
import { conducts, startEffectServer } from '../support/effect-server/index.ts';
import type { HerdJob, HerdLine } from './herd-member.ts';

const processes = 4;
const callers = 250;
/** Whoever waits for another process looks every now and then; how often depends on how long the effect takes. */
const mostQuestions = 40;

describe.each(storeNames)('a thousand callers of one key on %s', (store) => {
  const isMissing = store === 'redis' && inject('redisUrl') === '';
  test.skipIf(isMissing)(
    'one effect, a thousand equal answers, a handful of questions per process',
    async () => {
      using scratch = newScratch('herd');
      await using ledger = await startLedger(store, scratch.path('ledger.db'));
      await using server = await startEffectServer({ log: scratch.path('effects.jsonl') });
      await server.behave('mail', { usually: conducts.slow(300, 300) });
      const job: HerdJob = { ledger: ledger.address, url: server.url, callers };
      const herd = Array.from({ length: processes }, () =>
        startNode<HerdLine>(new URL('./herd-member.ts', import.meta.url), job),
      );
      await Promise.all(herd.map((member) => member.line((line) => 'ready' in line)));
      await Promise.all(herd.map((member) => member.finish()));
      for (const { errors } of herd) expect(errors()).toBe('');
      const told = herd.flatMap(({ lines }) => lines.filter((line) => 'asked' in line));
      console.log(store, JSON.stringify(told.map(({ asked }) => asked)));
      expect(told.flatMap(({ errors }) => errors)).toEqual([]);
      expect(server.effects()).toHaveLength(1);
      expect(told.reduce((sum, { executed }) => sum + executed, 0)).toBe(1);
      expect(new Set(told.flatMap(({ values }) => values)).size).toBe(1);
      expect(told).toHaveLength(processes);
      for (const { asked } of told)
        expect(Object.values(asked).reduce((sum, times) => sum + times, 0)).toBeLessThan(mostQuestions);
    },
  );
});
