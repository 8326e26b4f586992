// Judges a row. One effect and equal answers, or a reported doubt, is a pass; a second
// effect, a lost one, or an answer that differs is not.

import { isRepeatable } from '../../core/contract/words.ts';
import type { ErrorCode } from '../../core/errors.ts';
import type { Row } from './rows.ts';
import { isSame } from './same.ts';
import { keysOf, type Played, type Scene } from './scene.ts';

export type Complaint =
  | 'refused'
  | 'repeated'
  | 'two keys'
  | 'not stored'
  | 'denied'
  | 'threw'
  | 'values differ'
  | 'not replayed'
  | 'uncounted'
  | 'verify is wrong'
  | 'not run'
  | 'no other words';

export type Judgement =
  | { readonly status: 'once' | 'in doubt'; readonly verdict: string }
  | { readonly status: 'failed'; readonly verdict: string; readonly complaint: Complaint };

const refusals: readonly ErrorCode[] = [
  'INVALID_ARGS',
  'NOT_CANONICAL',
  'NO_IDENTITY',
  'NOT_PERMITTED',
  'VERSION_MISMATCH',
  'KEY_CONFLICT',
  'CONTRACT_INVALID',
  'EXPIRED',
  'STORE_UNAVAILABLE',
  'STORE_UNSAFE',
  'STORE_MOVED',
  'UNRECORDED',
];

const doubts: readonly ErrorCode[] = ['IN_DOUBT', 'PARTIAL_SUCCESS'];

/** `counts`: an earlier row has shown that `effects` sees what `run` does. */
export function judge(row: Row, scene: Scene, growth: number, counts: boolean): Judgement {
  const { contract } = scene.subject;
  const refused = errorIn(scene.calls, refusals);
  if (refused !== undefined) return failed('refused', `refused: ${refused.code}`);
  if (row.expects === 'runs') return judgeOther(scene, growth);
  if (growth > 1) return failed('repeated', `landed ${growth} times`);
  if (isRepeatable(contract.effect)) return judgeRepeatable(scene, growth, counts);

  const keys = keysOf(scene.calls).size;
  if (keys > 1) return failed('two keys', `${keys} keys for one intent`);
  if (row.name === 're-worded content' && isSame(scene.calls[0]?.args, scene.calls[1]?.args))
    return failed('no other words', '`reword` changed nothing');
  if (contract.result === 'value' && errorIn(scene.calls, ['RESULT_OMITTED']) !== undefined)
    return failed('not stored', 'landed once, but a replay has no value');
  const thrown = scene.calls.find(
    ({ result }) => result?.ok === false && !isExpected(scene, result.error.code),
  );
  if (thrown !== undefined) {
    return growth === 1
      ? failed('denied', 'landed, and is recorded as not landed')
      : failed('threw', `threw: ${errorOf(thrown)}`);
  }
  if (!areAnswersEqual(scene)) return failed('values differ', 'the answers differ');
  if (row.expects === 'replays' && !isRestReplayed(scene))
    return failed('not replayed', 'a repeated call does not say that it was replayed');

  const inDoubt = isInDoubt(scene.calls.at(-1));
  if (growth === 1 && scene.watch.verdicts.some(({ verdict }) => verdict === 'notLanded'))
    return failed('verify is wrong', 'landed, and `verify` says that it did not');
  // No fault was played, and yet the call is in doubt and nothing landed: `run` does not work with these args.
  if (growth === 0 && inDoubt && row.expects === 'replays')
    return failed('threw', `threw: ${errorOf(scene.calls[0])}`);
  if (growth === 0 && !inDoubt) {
    return counts
      ? { status: 'once', verdict: 'landed once: the target had it already' }
      : failed('uncounted', 'ran, but `effects` did not grow');
  }
  return inDoubt
    ? { status: 'in doubt', verdict: `in doubt: ${whyInDoubt(scene)}` }
    : { status: 'once', verdict: 'landed once' };
}

function judgeOther(scene: Scene, growth: number): Judgement {
  const [first, other] = scene.calls;
  if (growth === 1) return { status: 'once', verdict: 'landed too' };
  if (growth > 1) return failed('repeated', `landed ${growth} times`);
  if (first?.key === other?.key) return failed('not run', 'did not run: taken for a repetition');
  return other?.result?.ok === false
    ? failed('threw', `threw: ${errorOf(other)}`)
    : failed('uncounted', 'ran, but `effects` did not grow');
}

/** These run at every call: what counts is that the world looks as after one. */
function judgeRepeatable(scene: Scene, growth: number, counts: boolean): Judgement {
  const last = scene.calls.at(-1);
  if (last?.result?.ok === false) return failed('threw', `threw: ${errorOf(last)}`);
  if (growth === 0 && !counts && scene.subject.contract.effect !== 'read')
    return failed('uncounted', 'ran, but `effects` did not grow');
  return { status: 'once', verdict: growth === 0 ? 'ran, and changed nothing' : 'ran, and changed it once' };
}

function failed(complaint: Complaint, verdict: string): Judgement {
  return { status: 'failed', verdict, complaint };
}

export function errorIn(calls: readonly Played[], codes: readonly ErrorCode[]) {
  for (const { result } of calls)
    if (result?.ok === false && codes.includes(result.error.code)) return result.error;
  return undefined;
}

/** What a call may end with although nothing is wrong with the tool. */
function isExpected({ subject: { contract } }: Scene, code: ErrorCode): boolean {
  if (doubts.includes(code)) return true;
  if (code === 'RESULT_OMITTED') return contract.result === 'reference';
  return code === 'IN_FLIGHT' && contract.ifBusy === 'fail';
}

function isInDoubt(played: Played | undefined): boolean {
  return played?.result?.ok === false && doubts.includes(played.result.error.code);
}

/** A live value may differ from the stored one: that is what `onReplay` is for. */
function areAnswersEqual({ calls, subject }: Scene): boolean {
  if (subject.contract.result === 'reference' || subject.definition.onReplay !== undefined) return true;
  const answers = calls.filter(({ result }) => result?.ok && !result.receipt.skipped);
  return answers.every(({ value }) => isSame(value, answers[0]?.value));
}

function isRestReplayed({ calls }: Scene): boolean {
  const ran = calls.filter(({ result }) => result?.ok && !result.receipt.skipped && !result.receipt.replayed);
  return ran.length <= 1;
}

function whyInDoubt({ watch, calls, subject: { contract } }: Scene): string {
  const unsure = watch.verdicts.find((answer) => answer.verdict === 'unsure');
  if (unsure !== undefined)
    return `\`verify\` cannot tell${unsure.because === undefined ? '' : ` (${unsure.because})`}`;
  if (errorIn(calls, doubts)?.evidence?.withoutKey === true)
    return "`run` sends a key that is not semel's, so nothing is sent again; send `ctx.key`, or describe the SDK's keys in `provider.sdkKey`";
  return contract.provider === undefined
    ? 'held for a person; `verify` or `provider` would decide it'
    : 'held for a person';
}

export function errorOf(played: Played | undefined): string {
  if (played?.result?.ok !== false) return 'nothing';
  const { cause, message } = played.result.error;
  return cause instanceof Error ? cause.message : message;
}
