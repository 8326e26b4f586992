// SIGSTOP past the lease, then SIGCONT: what a process does that does not know that time went on without it.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSemel, type Resolution, type Semel } from '../../src/index.ts';
import { newScratch } from '../processes/scratch.ts';
import { type EffectServer, startEffectServer } from '../support/effect-server/index.ts';
import { type Heard, heard } from './heard.ts';
import type { LineName } from './lines.ts';
import type { StoppingPoint } from './points.ts';
import { targets, toolOf } from './tools.ts';
import { makeZombie, type Zombie } from './zombie.ts';

const scratch = newScratch('zombie');
const ledger = scratch.path('ledger.db');
let server: EffectServer;
let semel: Semel;

beforeAll(async () => {
  server = await startEffectServer({ log: scratch.path('effects.jsonl'), targets: targets() });
  semel = createSemel({
    store: `sqlite:${ledger}`,
    namespace: 'crash',
    cache: false,
    onWarning: () => undefined,
  });
  // These scenes are about processes that stand still, not about many that make one ledger at once.
  await semel.open();
});

afterAll(async () => {
  await semel.close();
  await server.close();
  scratch[Symbol.dispose]();
});

interface Scene extends Zombie {
  /** Another process makes the same call. */
  rival(): Promise<Heard>;
  /** A person decides, about the record as it is now. */
  person(resolution: Resolution, force?: 'force'): Promise<void>;
  effects(): number;
  /** What the ledger was told besides takeovers and verdicts. */
  evidence(): Promise<string[]>;
}

async function scene(line: LineName, point: StoppingPoint, name: string): Promise<Scene> {
  const intent = `${line}, ${point}: ${name}`;
  const zombie = await makeZombie(semel, { ledger, url: server.url }, line, point, intent);
  const { key } = zombie.record;
  const tool = toolOf(semel, line, { url: server.url, at: () => undefined });
  return {
    ...zombie,
    rival: async () => heard(await tool.try({ intent, wording: 'rival' })),
    async person(resolution, force) {
      const record = await semel.records.get(key);
      const { ref } = record ?? zombie.record;
      await semel.doubts.resolve(ref, resolution, { by: 'a person', force: force === 'force' });
    },
    effects: () => server.effects().filter((effect) => effect.intent === intent).length,
    async evidence() {
      const told = (await semel.records.history(key)).map(({ type }) => type);
      return told.filter((type) => !['takeover', 'resolved', 'replayed', 'cleared'].includes(type));
    },
  };
}

test.concurrent('nobody came by: its news is late and still true', async () => {
  const { wake, rival, effects, evidence } = await scene('plain', 'landed', 'alone');
  expect((await wake()).word).toBe('run');
  expect((await rival()).word).toBe('replay');
  expect(effects()).toBe(1);
  expect(await evidence()).toEqual([]);
});

test.concurrent('a rival takes over at a target that honours the key: one effect, the late news is fenced', async () => {
  const { wake, rival, effects, evidence } = await scene('keyed', 'landed', 'rival');
  const first = await rival();
  expect(first.word).toBe('run');
  const late = await wake();
  expect(late.value).toEqual(first.value);
  expect(effects()).toBe(1);
  expect(await evidence()).toEqual(['fenced']);
});

test.concurrent('a request that leaves after the takeover meets the key at the target: still one effect', async () => {
  const { wake, rival, effects, evidence } = await scene('keyed', 'dispatched', 'rival');
  const first = await rival();
  expect(first.word).toBe('run');
  const late = await wake();
  expect(late.value).toEqual(first.value);
  expect(effects()).toBe(1);
  expect(await evidence()).toEqual(['fenced']);
});

test.concurrent('a rival asks the tool: it landed, the zombie only confirms it', async () => {
  const { wake, rival, effects, evidence } = await scene('verified', 'landed', 'rival');
  const first = await rival();
  expect(first.word).toBe('replay');
  const late = await wake();
  expect([late.word, late.value]).toEqual(['run', first.value]);
  expect(effects()).toBe(1);
  expect(await evidence()).toEqual(['lateNews']);
});

test.concurrent('stopped before the line, it may not cross it any more', async () => {
  const { wake, rival, effects } = await scene('explicit', 'claimed', 'rival');
  const first = await rival();
  expect(first.word).toBe('run');
  const late = await wake();
  expect([late.word, late.value]).toEqual(['replay', first.value]);
  expect(effects()).toBe(1);
});

test.concurrent('stopped with one foot over the line: the ledger itself does not let it cross', async () => {
  const { wake, rival, effects } = await scene('explicit', 'crossing', 'rival');
  const first = await rival();
  expect(first.word).toBe('run');
  const late = await wake();
  expect([late.word, late.value]).toEqual(['replay', first.value]);
  expect(effects()).toBe(1);
});

test.concurrent('paused before dispatch without a rival, it renews its lease and continues', async () => {
  const { wake, rival, effects } = await scene('explicit', 'claimed', 'alone');
  expect((await wake()).word).toBe('run');
  expect((await rival()).word).toBe('replay');
  expect(effects()).toBe(1);
});

test.concurrent('a rival gets IN_DOUBT, and the zombie settles it later', async () => {
  const { wake, rival, effects, evidence } = await scene('plain', 'dispatched', 'doubt');
  expect((await rival()).word).toBe('doubt');
  expect((await wake()).word).toBe('run');
  expect((await rival()).word).toBe('replay');
  expect(effects()).toBe(1);
  expect(await evidence()).toEqual([]);
});

test.concurrent('a person says "landed": the late success only shows whose it was', async () => {
  const { wake, rival, person, effects, evidence } = await scene('plain', 'landed', 'person');
  await person({ landed: { effect: 'seen by a person' } });
  expect((await wake()).value).toEqual({ effect: 'seen by a person' });
  expect((await rival()).value).toEqual({ effect: 'seen by a person' });
  expect(effects()).toBe(1);
  expect(await evidence()).toEqual(['lateNews']);
});

test.concurrent('"not landed" is refused while it cannot be known', async () => {
  const { wake, person, effects } = await scene('plain', 'landed', 'early');
  await expect(person('notLanded')).rejects.toThrow('may still land');
  expect((await wake()).word).toBe('run');
  expect(effects()).toBe(1);
});

test.concurrent('a person was wrong with "not landed", and nobody ran it yet: the late success settles it', async () => {
  const { wake, rival, person, effects, evidence } = await scene('plain', 'landed', 'wrong person');
  await person('notLanded', 'force');
  expect((await wake()).word).toBe('run');
  expect((await rival()).word).toBe('replay');
  expect(effects()).toBe(1);
  expect(await evidence()).toEqual(['lateNews']);
});

test.concurrent('a person forced "not landed", a rival ran it, the old request left after all: two effects, and said so', async () => {
  const { wake, rival, person, effects, evidence } = await scene('plain', 'dispatched', 'duplicate');
  await person('notLanded', 'force');
  expect((await rival()).word).toBe('run');
  await wake();
  expect(effects()).toBe(2);
  expect(await evidence()).toEqual(['duplicate']);
});

test.concurrent('the same at a target that honours the key: one effect', async () => {
  const { wake, rival, person, effects, evidence } = await scene('keyed', 'dispatched', 'forced');
  await person('notLanded', 'force');
  const first = await rival();
  expect(first.word).toBe('run');
  expect((await wake()).value).toEqual(first.value);
  expect(effects()).toBe(1);
  expect(await evidence()).toEqual(['fenced']);
});

test.concurrent('a person gave it up: that it landed contradicts them, and is listed', async () => {
  const { wake, rival, person, effects, evidence } = await scene('plain', 'landed', 'given up');
  await person({ abandon: 'the customer called it off' });
  await wake();
  expect((await rival()).word).toBe('FAILED');
  expect(effects()).toBe(1);
  expect(await evidence()).toEqual(['contradiction']);
});
