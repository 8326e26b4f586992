// A framework dispatches one call of its model again, in another turn: it is staged once.

import { describe, expect, test } from 'vitest';
import type { Semel } from '../../src/index.ts';
import { places } from './places.ts';

const toolCallId = 'call_a8sd7f6a8sd7f68asd7f';
const inTurn = (turn: string) => ({ conversation: 'c', turn, toolCallId });

function mailer(semel: Semel) {
  const sent: string[] = [];
  const tool = semel.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'turn',
    run: async ({ to }: { to: string }) => void sent.push(to),
  });
  return { tool, sent };
}

describe.each(places)('$name', ({ open }) => {
  test('staged in two turns, it is delivered once', async () => {
    await using at = await open();
    const { tool, sent } = mailer(at.semel);
    const stage = (turn: string) => at.transaction((tx) => tool.stage(tx, { to: 'ada' }, inTurn(turn)));
    expect(await stage('1')).toMatchObject({ status: 'staged' });
    expect(await stage('2')).toMatchObject({ status: 'staged before' });
    await at.semel.outbox.drain();
    expect(await stage('3')).toMatchObject({ status: 'delivered' });
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 0 });
    expect(sent).toEqual(['ada']);
  });

  test('what was called directly in an earlier turn is delivered, and the other way round', async () => {
    await using at = await open();
    const { tool, sent } = mailer(at.semel);
    const stage = (to: string, turn: string) => at.transaction((tx) => tool.stage(tx, { to }, inTurn(turn)));
    await tool({ to: 'ada' }, inTurn('1'));
    expect(await stage('ada', '2')).toMatchObject({ status: 'delivered' });
    await stage('bob', '1');
    await tool({ to: 'bob' }, inTurn('2'));
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 0 });
    expect(sent).toEqual(['ada', 'bob']);
  });

  test('a turn whose transaction was rolled back was never made', async () => {
    await using at = await open();
    const { tool, sent } = mailer(at.semel);
    const failed = at.transaction(async (tx) => {
      await tool.stage(tx, { to: 'ada' }, inTurn('1'));
      throw new Error('out of stock');
    });
    await expect(failed).rejects.toThrow('out of stock');
    await at.transaction((tx) => tool.stage(tx, { to: 'ada' }, inTurn('2')));
    await at.semel.outbox.drain();
    expect(sent).toEqual(['ada']);
  });
});
