// What to change, in the words of the contract, for a row that failed: found by asking the scene what happened
// and, where the key differs, by deriving it once more field by field.

import type { Contract } from '../../core/contract/contract.ts';
import { isRepeatable } from '../../core/contract/words.ts';
import { memoryStore } from '../../store/memory.ts';
import { type Difference, differences, freshnessOf, isIdentity } from './fields.ts';
import { type Complaint, errorIn, errorOf } from './judge.ts';
import { lateRetry, type Row } from './rows.ts';
import { keysOf, type Played, type Scene, type Subject } from './scene.ts';

/** What earlier rows have shown, as far as it tells two causes apart. */
interface Shown {
  readonly honoursKey: boolean;
}

export async function fixFor(row: Row, scene: Scene, complaint: Complaint, shown: Shown): Promise<string> {
  const { contract } = scene.subject;
  switch (complaint) {
    case 'refused':
      return refusal(scene);
    case 'repeated':
      return repetition(row, scene, shown);
    case 'two keys':
      return keyDifference(row, scene);
    case 'not stored': {
      const why = scene.calls.find(({ result }) => result?.receipt.omitted)?.result?.receipt.omitted;
      return `the result cannot be stored (${why ?? 'nobody knows why'}): return data, or keep the provider's id with \`ctx.note\` and fetch the value in \`onReplay\`.`;
    }
    case 'denied':
      return denial(scene);
    case 'threw':
      return `\`run\` must work with these args before it can be tested: ${errorOf(scene.calls.find(({ result }) => result?.ok === false))}`;
    case 'values differ':
      return 'the stored value is not the one that was returned: do not change a result after it was returned.';
    case 'not replayed':
      return `look at \`semel.records.history(${JSON.stringify(scene.calls[0]?.key)})\`: a call ran that should have been answered.`;
    case 'uncounted':
      return `let \`effects\` count what \`run\` of ${contract.name} does.`;
    case 'verify is wrong':
      return '`verify` must find what `run` did, by `ctx.mark()` or by the args; where it cannot be sure, `return unsure()`.';
    case 'not run':
      return sameKey(scene);
    case 'no other words':
      return 'let `reword` return the args with other content.';
  }
}

function refusal({ calls }: Scene): string {
  const error = calls.map(({ result }) => result?.ok === false && result.error).find(Boolean);
  if (!error) return '';
  if (error.code === 'KEY_CONFLICT')
    return "the caller's `key` is the same for another intent: pass `call` as a function that makes it from the args.";
  return error.message;
}

/** The ways to a second effect, the surest sign first. */
async function repetition(row: Row, scene: Scene, { honoursKey }: Shown): Promise<string> {
  const { subject, watch, calls } = scene;
  const { contract, definition } = subject;
  if (contract.mode === 'observe')
    return "`mode: 'observe'` records and stops nothing: test the tool with `mode: 'enforce'`.";
  if (isRepeatable(contract.effect))
    return `\`effect: '${contract.effect}'\` runs at every call, and each run changed the world: declare it 'write-non-idempotent'.`;
  const greedy = watch.runs.find(({ effects }) => effects !== undefined && effects > 1);
  if (greedy !== undefined) {
    const unless = row.expects === 'replays' ? ' If both are meant, let `effects` count one of them.' : '';
    return `\`run\` retries by itself (one run made ${greedy.effects} effects): let \`retry\` do it, with \`ctx.key\`.${unless}`;
  }
  if (watch.meddlers.size > 0) {
    const [part] = watch.meddlers;
    return `\`${part}\` changes the world: only \`run\` may.`;
  }
  if (keysOf(calls).size > 1) return keyDifference(row, scene);
  if (contract.provider !== undefined && watch.runs.length > 1)
    return row.name === lateRetry && honoursKey ? windowTooLong(contract) : keyNotHonoured(scene);
  if (contract.onDoubt === 'rerun')
    return "`onDoubt: 'rerun'` accepts a second effect: leave it out, and give the tool a `verify`.";
  if (watch.verdicts.some(({ verdict }) => verdict === 'notLanded'))
    return '`verify` said "not landed" of an effect that had landed: let it find what `run` did, by `ctx.mark()` or by the args; where it cannot be sure, `return unsure()`.';
  if (errorIn(calls, ['NOT_LANDED', 'FAILED']) !== undefined) return denial(scene);
  if (contract.windowMs < 60_000)
    return `\`window: ${JSON.stringify(definition.window)}\` is over before the next call: leave it out.`;
  return `nothing says why: look at \`semel.records.history(${JSON.stringify(calls[0]?.key)})\`.`;
}

/** The error came after the effect, but the code says that it means "not landed". */
function denial({ subject: { definition, contract } }: Scene): string {
  const who =
    definition.classify !== undefined
      ? '`classify`'
      : contract.provider?.classify !== undefined
        ? '`provider.classify`'
        : '`run`';
  return `${who} takes an error that came after the effect for "not landed": say so only of a request that cannot have arrived.`;
}

/** The key was honoured soon after the first request, and no longer at the end of the window. */
function windowTooLong({ provider }: Contract): string {
  return `${provider?.name} forgets a key sooner than \`provider.window: ${JSON.stringify(provider?.window)}\` says, and a retry in between lands again: write how long it really remembers keys.`;
}

function keyNotHonoured({ subject: { contract }, watch }: Scene): string {
  const provider = contract.provider;
  const { header = 'Idempotency-Key', bodyField, queryField } = provider ?? {};
  const place = bodyField ?? queryField ?? header;
  const reads = (name: string) => watch.runs.some(({ read }) => read.has(name));
  if (reads('key') || reads('keyFor'))
    return `\`run\` reads \`ctx.key\`, and the same key made two effects: send it as ${provider?.name} wants it (${place}); if it does not honour keys, replace \`provider\` by \`verify\`.`;
  if (
    watch.requests.some(({ unsafe, headers }) => unsafe && headers.has(header.toLowerCase())) &&
    !reads('fetch')
  )
    return `\`run\` sends a key that is not semel's (its SDK makes one up): send \`ctx.key\` to ${provider?.name} (${place}), or give the SDK \`ctx.fetch\`.`;
  return `\`run\` does not pass \`ctx.key\` on: send it to ${provider?.name} (${place}), or use \`ctx.fetch\`.`;
}

/** Two calls of one intent, and their keys differ. */
async function keyDifference(row: Row, scene: Scene): Promise<string> {
  const { contract } = scene.subject;
  const first = scene.calls[0] as Played;
  const other = scene.calls.find(({ key }) => key !== first.key) as Played;
  const reworded = row.name === 're-worded content';

  const own = (['key', 'conversation', 'turn', 'run'] as const).find(
    (name) => first.options[name] !== other.options[name],
  );
  if (own === 'key')
    return reworded
      ? "the caller's `key` changes with the wording: make it from what makes the intent."
      : "the caller's `key` is another at each call although nothing changed: make it once per intent.";
  if (own !== undefined)
    return `\`${own}\` is another at each call although nothing changed: pass the one that all retries share.`;

  const [before, after] = [await argsOf(scene.subject, first), await argsOf(scene.subject, other)];
  const guilty = differences(before, after).filter((each) => isIdentity(contract, before, each));
  if (guilty.length === 0)
    return 'the same args give another key at each call: a function in `normalize`, or the schema, is not stable.';
  return guilty.map((each) => fieldFix(scene.subject, each, reworded)).join(' ');
}

function fieldFix({ contract }: Subject, difference: Difference, reworded: boolean): string {
  const { path } = difference;
  const fresh = freshnessOf(difference);
  if (path === '')
    return 'the args are one value, and it differs: pass an object, and name what makes the intent.';
  const list = reworded && fresh === undefined ? 'content' : 'volatile';
  const why = reworded
    ? 'is identity'
    : fresh === 'uuid'
      ? 'is another uuid at each call although nothing changed'
      : fresh === 'time'
        ? 'is fresh at each call'
        : 'differs at each call although nothing changed';
  const once = fresh === 'uuid' && !reworded ? 'make it once per intent, or ' : '';
  return `\`${path}\` ${why}: ${once}${cure(contract.fields.identity, path, list)}.`;
}

function cure(identity: readonly string[] | undefined, path: string, list: 'content' | 'volatile'): string {
  if (identity === undefined) return `name it in \`${list}\``;
  if (identity.includes(path))
    return list === 'content' ? 'take it out of `identity`' : 'move it from `identity` to `volatile`';
  const parent = identity.find((each) => path.startsWith(`${each}.`)) ?? path;
  return `name the fields of \`${parent}\` that make the intent instead of \`${parent}\``;
}

/** Two intents, and one key. */
async function sameKey({ subject, calls }: Scene): Promise<string> {
  const [first, other] = calls as [Played, Played];
  if (first.options.key !== undefined)
    return "the caller's `key` is the same for another intent: make it from the args.";
  const found = differences(await argsOf(subject, first), await argsOf(subject, other));
  if (found.length === 0) return '`otherArgs` are the same args: pass a different intent.';
  const paths = found.map(({ path }) => `\`${path}\``).join(', ');
  const isOne = found.length === 1;
  const differ = `${paths} ${isOne ? 'differs' : 'differ'}`;
  const [are, it] = isOne ? ['is', 'it'] : ['are', 'them'];
  return subject.contract.fields.identity === undefined
    ? `${differ} but ${are} not part of the key: take ${it} out of \`content\` or \`volatile\`.`
    : `${differ} but ${are} not part of the key: name ${it} in \`identity\`.`;
}

/** The args as `run` would get them, from a ledger of its own: nothing is run, and nothing is remembered. */
async function argsOf(subject: Subject, { args, options }: Played): Promise<unknown> {
  let seen: unknown = args;
  const { tool, semel } = subject.rebuild({
    store: () => memoryStore(),
    definition: (definition) => ({
      ...definition,
      run: ((given: unknown) => {
        seen = given;
      }) as typeof definition.run,
      ...(definition.prepare === undefined ? {} : { prepare: async () => null }),
    }),
  });
  await tool.try(args, options);
  await semel.close({ grace: 0 });
  return seen;
}
