// The clients and servers of both SDKs over standard input and output, with the proxy between them.

import { describe, expect, test } from 'vitest';
import { clientNames, stdioClient } from './clients.ts';
import { errorOf, isQuestion, proxyPlace, serverAt } from './proxy.ts';

const replayed = 'dev.semel/replayed';

describe.each(clientNames)('client %s', (client) => {
  describe.each(['v1.ts', 'v2.ts'].filter((server) => client !== 'v2 modern' || server === 'v2.ts'))(
    'server %s',
    (server) => {
      test('a write lands once for two clients; other args run; hints are minded', async () => {
        const here = proxyPlace();
        const command = here.command([], [process.execPath, serverAt(server), here.path('effects')]);
        const one = await stdioClient(client, command, here.env);
        expect(await one.tools()).toEqual(['send', 'look', 'put', 'fail', 'boom', 'slow', 'semel_run_again']);
        const first = await one.call('send', { to: 'ann', body: 'hi' });
        expect(first.content).toEqual([{ type: 'text', text: 'send 1' }]);
        expect(first._meta?.[replayed]).toBeUndefined();
        await one.close();

        // It knows the tools from before, and does not list them again.
        const two = await stdioClient(client, command, here.env);
        const second = await two.call('send', { body: 'hi', to: 'ann' });
        expect(isQuestion(second)).toBe(true);
        expect(second.structuredContent).toEqual(first.structuredContent);
        expect(second.content.at(-1)?.text).toBe('send 1');
        await two.call('send', { to: 'bob' });
        for (const name of ['look', 'put']) {
          for (const _ of [1, 2])
            expect((await two.call(name, { to: 'x' }))._meta?.[replayed]).toBeUndefined();
        }
        expect(here.effects()).toEqual([
          'send ann hi',
          'send bob ',
          'look x ',
          'look x ',
          'put x ',
          'put x ',
        ]);
      });

      test('a tool that throws is in doubt; a call that does not fit its schema is not', async () => {
        const here = proxyPlace();
        const command = here.command([], [process.execPath, serverAt(server), here.path('effects')]);
        const one = await stdioClient(client, command, here.env);
        expect((await one.call('boom', { to: 'ann' })).content[0]?.text).toContain('socket hang up');
        const held = await one.call('boom', { to: 'ann' });
        expect(held.isError).toBe(true);
        expect(errorOf({ result: held })).toMatchObject({ code: 'IN_DOUBT', retriable: false });
        const misfit = await one.call('send', { to: 7 }).catch((error: Error) => error);
        expect(JSON.stringify(misfit) + String(misfit)).toContain('Invalid arguments');
        expect(here.effects()).toEqual(['boom ann ']);
        const doubts = (await here.json('doubt')) as { contract: string }[];
        expect(JSON.stringify(doubts)).toContain('.boom');
        expect(JSON.stringify(doubts)).not.toContain('.send');
      });
    },
  );
});
