// What every adapter promises, as data: any framework that has a harness can be held to it.

import assert from 'node:assert/strict';
import { Rejected } from '../../../src/core/signals.ts';
import { isToolError } from '../../../src/guard/index.ts';
import type { AdapterCase, AdapterHarness } from './harness.ts';
import { mail, refund, scene, search } from './scene.ts';

export {
  type AdapterCase,
  type AdapterHarness,
  type AgentReport,
  type AgentRun,
  type Effects,
  type Means,
  type Script,
  type ScriptedCall,
  whyAbsent,
} from './harness.ts';
export { contractPolicies } from './scene.ts';

/** The cases; each plays in a world and on a ledger of its own. */
export function adapterContract(): readonly AdapterCase[] {
  return cases;
}

/** What a model reads and then does it again. */
const invitation = /(please )?try again/i;

const cases: readonly AdapterCase[] = [
  {
    name: 'a first call runs, and its value is the tool’s own',
    run: (harness) =>
      scene(harness, async ({ play, did }) => {
        const { outputs, prompt } = await play([[refund]]);
        did('refund');
        assert.deepEqual(outputs, [{ done: 'refund', number: 1 }]);
        assert.doesNotMatch(prompt, /nothing was sent again/);
      }),
  },
  {
    name: 'the model’s identical second call in the turn is replayed: equal for the code, and the model is told',
    run: (harness) =>
      scene(harness, async ({ play, did }) => {
        const { outputs, prompt } = await play([[mail], [mail]]);
        did('mail');
        assert.deepEqual(outputs, [
          { done: 'mail', number: 1 },
          { done: 'mail', number: 1 },
        ]);
        assert.match(prompt, /Already done on \d{4}-\d\d-\d\d at \d\d:\d\d UTC; nothing was sent again\./);
        assert.match(prompt, /To repeat on purpose, ask the user\./);
      }),
  },
  {
    name: 'the whole run is made again with new ids: nothing runs twice',
    run: (harness) =>
      scene(harness, async ({ play, did }) => {
        const first = await play([[refund], [mail]]);
        const second = await play([[refund], [mail]]);
        const third = await play([[refund], [mail]]);
        did('refund', 'mail');
        assert.deepEqual(second.outputs, first.outputs);
        assert.deepEqual(third.outputs, first.outputs);
      }),
  },
  {
    name: 'a re-worded content field is the same intent, and the model hears which words were used',
    run: (harness) =>
      scene(harness, async ({ play, done, did }) => {
        await play([[mail]]);
        const { prompt } = await play([[{ ...mail, args: { ...mail.args, body: 'On its way to you!' } }]]);
        did('mail');
        assert.equal(done[0]?.args.body, 'It is on its way.');
        assert.match(prompt, /as first worded: your `body` was not used/);
      }),
  },
  {
    name: 'a different amount is another intent',
    run: (harness) =>
      scene(harness, async ({ play, did }) => {
        await play([[refund]]);
        await play([[{ ...refund, args: { ...refund.args, amount: 100 } }]]);
        did('refund', 'refund');
      }),
  },
  {
    name: 'another tool that the model chooses when it plans anew runs',
    run: (harness) =>
      scene(harness, async ({ play, did }) => {
        await play([[refund]]);
        await play([[mail]]);
        await play([[refund], [mail]]);
        did('refund', 'mail');
      }),
  },
  {
    name: 'another turn is another intent, where the policy says turn',
    run: (harness) =>
      scene(harness, async ({ play, did }) => {
        await play([[mail], [refund]], { turn: 'turn-1' });
        await play([[mail], [refund]], { turn: 'turn-2' });
        did('mail', 'refund', 'mail');
      }),
  },
  {
    name: 'identical calls made at once run once',
    run: (harness) =>
      scene(harness, async ({ play, did }) => {
        const { outputs } = await play([[mail, mail, mail]]);
        did('mail');
        assert.deepEqual(outputs, Array(3).fill({ done: 'mail', number: 1 }));
      }),
  },
  {
    name: 'a read runs every time',
    run: (harness) =>
      scene(harness, async ({ play, did }) => {
        await play([[search], [search]]);
        did('search', 'search');
      }),
  },
  {
    name: 'a timeout after the request left reaches the model as IN_DOUBT with what to do, never as an invitation',
    run: (harness) =>
      scene(
        harness,
        async ({ play, did, semel }) => {
          const { outputs, prompt } = await play([[refund], [refund]]);
          did('refund');
          for (const output of outputs) {
            assert.ok(isToolError(output), 'the code can tell it from a value');
            assert.equal(output.code, 'IN_DOUBT');
            assert.equal(output.retriable, false);
            assert.match(output.correctiveAction, /^Do not do it again\./);
          }
          assert.match(prompt, /IN_DOUBT/);
          assert.match(prompt, /correctiveAction/);
          assert.doesNotMatch(prompt, invitation);
          // A model that has a shell could decide its own doubt; and what a model reads, its provider reads.
          assert.doesNotMatch(prompt, /semel resolve|doubts\.resolve|adapter-contract|refund\/-\//);
          assert.equal((await semel.doubts.list()).items.length, 1);
        },
        {
          refund: () => {
            throw Object.assign(new Error('The operation timed out.'), { code: 'ETIMEDOUT' });
          },
        },
      ),
  },
  {
    name: 'a refusal reaches the model as data',
    run: (harness) =>
      scene(
        harness,
        async ({ play, did }) => {
          const { outputs, prompt } = await play([[refund]]);
          did('refund');
          assert.ok(isToolError(outputs[0]));
          assert.equal(outputs[0].code, 'FAILED');
          assert.match(prompt, /the order is not paid/);
          assert.doesNotMatch(prompt, invitation);
        },
        {
          refund: () => {
            throw new Rejected('the order is not paid');
          },
        },
      ),
  },
  {
    name: 'an abort after the request left does not forget it: what the tool says later is recorded',
    run(harness) {
      const abort = new AbortController();
      const { promise: answered, resolve: answer } = Promise.withResolvers<unknown>();
      return scene(
        harness,
        async ({ play, did, semel }) => {
          const given = play([[refund]], { signal: abort.signal }).catch(() => undefined);
          await until(async () => (await semel.records.list()).items.length === 1);
          abort.abort();
          answer({ done: 'late' });
          await given;
          await until(async () => (await semel.records.list()).items[0]?.status === 'succeeded');
          const { outputs } = await play([[refund]]);
          did('refund');
          assert.deepEqual(outputs, [{ done: 'late' }]);
        },
        { refund: () => answered },
      );
    },
  },
  {
    name: 'without an identity it guesses one from what was said, the same in every step, and warns',
    needs: 'guess',
    run: (harness) =>
      scene(harness, async ({ run, did, warnings }) => {
        // With each step more is said, by the model and by its tools; the user's last word is the same.
        const { outputs } = await harness.run(run([[mail], [mail]]));
        await harness.run(run([[search], [mail]]));
        did('mail', 'search');
        assert.deepEqual(outputs[1], outputs[0], 'in one run the words are those of one user');
        assert.match(warnings.join('\n'), /mail: the turn was guessed/);
      }),
  },
  {
    name: 'without an identity, identical calls made at once run once, and all of them get the value',
    needs: 'guess',
    run: (harness) =>
      scene(harness, async ({ run, did }) => {
        const { outputs } = await harness.run(run([[mail, mail], [mail]]));
        did('mail');
        assert.deepEqual(outputs, Array(3).fill({ done: 'mail', number: 1 }));
      }),
  },
  {
    name: 'two users who begin with the same words do not meet: the second is held back, and is told nothing of the first',
    needs: 'guess',
    run: (harness) =>
      scene(harness, async ({ run, did, warnings }) => {
        await harness.run(run([[mail]]));
        const { outputs, prompt } = await harness.run(run([[mail]]));
        did('mail');
        assert.ok(isToolError(outputs[0]), 'it is not given the value of the first');
        assert.equal(outputs[0].code, 'NO_IDENTITY');
        assert.equal(outputs[0].retriable, false);
        assert.doesNotMatch(prompt, /"number"|Already done/);
        assert.match(warnings.join('\n'), /mail: the same call was made before, and semel cannot tell/);
      }),
  },
  {
    name: 'two users who begin with the same words at once: one runs, and the other does not share its run',
    needs: 'guess',
    run: (harness) =>
      scene(harness, async ({ run, did }) => {
        const both = await Promise.all([harness.run(run([[mail]])), harness.run(run([[mail]]))]);
        did('mail');
        const held = both.filter(({ outputs }) => isToolError(outputs[0]));
        assert.equal(held.length, 1);
      }),
  },
  {
    name: 'two users whom the program names may say the same words: each has a run, and a run of its own made again',
    needs: 'guess',
    run: (harness) =>
      scene(harness, async ({ run, did, semel }) => {
        const as = (caller: string) => semel.within({ caller }, () => harness.run(run([[mail]])));
        const [ann, bob, again] = [await as('ann'), await as('bob'), await as('ann')];
        did('mail', 'mail');
        assert.notDeepEqual(bob.outputs, ann.outputs);
        assert.deepEqual(again.outputs, ann.outputs);
      }),
  },
  {
    name: 'what one user did for good is not told to another, and not done again',
    run: (harness) =>
      scene(harness, async ({ play, did, semel }) => {
        const as = (caller: string) => semel.within({ caller }, () => play([[refund]]));
        const ann = await as('ann');
        const { outputs, prompt } = await as('bob');
        did('refund');
        assert.ok(isToolError(outputs[0]));
        assert.equal(outputs[0].code, 'NOT_PERMITTED');
        assert.doesNotMatch(prompt, /"number"|Already done|nothing was sent again/);
        assert.deepEqual((await as('ann')).outputs, ann.outputs);
      }),
  },
  {
    name: 'an approval that is submitted twice runs it once',
    needs: 'approval',
    run: (harness) =>
      scene(harness, async ({ run, did, semel }) => {
        const approveTwice = harness.approveTwice as NonNullable<AdapterHarness['approveTwice']>;
        await semel.within({ conversation: 'chat-7', turn: 'turn-1' }, () =>
          approveTwice(run([[refund]]), (work) => work()),
        );
        did('refund');
      }),
  },
  {
    name: 'an approval that is submitted twice runs it once, also where each submission is a turn of its own',
    needs: 'approval',
    run: (harness) =>
      scene(harness, async ({ run, did, semel }) => {
        const approveTwice = harness.approveTwice as NonNullable<AdapterHarness['approveTwice']>;
        let clicks = 0;
        const within = <T>(turn: string, work: () => T) =>
          semel.within({ conversation: 'chat-7', turn }, work);
        await within('turn-1', () =>
          approveTwice(run([[mail]]), (work) => {
            clicks += 1;
            return within(`request-${clicks}`, work);
          }),
        );
        did('mail');
      }),
  },
  {
    name: 'a suspension passes through and gives the claim back; when it is resumed, it runs once',
    needs: 'suspension',
    run: (harness) =>
      scene(harness, async ({ run, did, semel }) => {
        const resume = harness.suspendAndResume as NonNullable<AdapterHarness['suspendAndResume']>;
        await semel.within({ conversation: 'chat-7', turn: 'turn-1' }, () => resume(run([[refund]])));
        did('refund');
        assert.equal((await semel.doubts.list()).items.length, 0);
        assert.equal((await semel.records.list()).items[0]?.status, 'succeeded');
      }),
  },
];

async function until(condition: () => Promise<boolean>): Promise<void> {
  for (let waited = 0; !(await condition()); waited += 1) {
    if (waited > 500) throw new Error('It did not happen.');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
