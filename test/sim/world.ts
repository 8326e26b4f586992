// The outside world: what landed, and a target that honours our key for a while, or does not. Requests travel; a
// request that has left lands whatever becomes of the process that sent it.

import type { Contract } from '../../src/core/contract/contract.ts';
import type { Chance } from './chance.ts';
import type { Faults } from './faults.ts';
import { type Effect, type Log, madeFor } from './log.ts';
import type { Owner, Scheduler } from './scheduler.ts';

/** How one target treats our key. */
export interface Target {
  /** How long it remembers a key; undefined: it has no notion of keys. */
  readonly remembersMs: number | undefined;
  /** It stores a refusal under the key too. */
  readonly replaysErrors: boolean;
  /** What landed is in its list only after this long. */
  readonly listLagMs: number;
}

export interface EffectRequest {
  readonly target: Target;
  readonly key: string;
  readonly generation: number;
  readonly fence: number;
  /** Which request of its run it is. */
  readonly part: number;
  readonly identity: string;
  readonly caller: string | undefined;
  /** Everything that is sent. */
  readonly body: string;
  readonly providerKey: string | undefined;
  readonly note: string | undefined;
  readonly contract: Contract;
  /** Its words may not be stored, so nobody else can send them again. */
  readonly mayBeReworded: () => boolean;
  /** How long a request may be under way before "not landed" is believed. */
  readonly bound: number;
  /** Nothing else ends it: its attempt has no timeout. */
  readonly mustAnswer: boolean;
  readonly call: string;
  readonly of: Effect['of'];
}

export type Answer =
  | { readonly kind: 'landed'; readonly effect: number }
  /** Definitely not: nothing was done for this request. */
  | { readonly kind: 'refused' }
  /** Turned away for now: nothing was done either. */
  | { readonly kind: 'denied' }
  | { readonly kind: 'not sent' }
  /** An error or silence that says nothing. */
  | { readonly kind: 'ambiguous' };

export interface World {
  send(owner: Owner, request: EffectRequest): Promise<Answer>;
  /** What the target's list shows by now for this generation of a key. */
  find(key: string, generation: number): readonly Effect[];
}

interface Remembered {
  readonly at: number;
  readonly body: string;
  readonly answer: Answer;
}

export function createWorld(scheduler: Scheduler, chance: Chance, faults: Faults, log: Log): World {
  const remembered = new Map<string, Remembered>();
  const { profile } = faults;

  function land(request: EffectRequest, sentAt: number, refuses: boolean): Answer {
    const { target, providerKey, body } = request;
    const honours = target.remembersMs !== undefined && providerKey !== undefined;
    const earlier = honours ? remembered.get(providerKey) : undefined;
    if (earlier !== undefined && scheduler.now < earlier.at + (target.remembersMs as number)) {
      if (earlier.body !== body) {
        if (request.mayBeReworded()) return { kind: 'refused' };
        log.violated(
          'the same key is sent with the same request',
          `${request.key}: ${earlier.body} / ${body}`,
        );
        return { kind: 'refused' };
      }
      return earlier.answer;
    }
    if (refuses) {
      const refused: Answer = { kind: 'refused' };
      if (honours && target.replaysErrors)
        remembered.set(providerKey, { at: scheduler.now, body, answer: refused });
      return refused;
    }
    const id = log.effects.length + 1;
    const { key, generation, fence, part, identity, caller, call, note, contract, of } = request;
    const at = scheduler.now;
    const seenAt = at + target.listLagMs;
    log.effects.push({
      id,
      key,
      generation,
      fence,
      part,
      identity,
      caller,
      call,
      sentAt,
      at,
      seenAt,
      providerKey,
      note,
      contract,
      of,
    });
    const answer: Answer = { kind: 'landed', effect: id };
    if (honours) remembered.set(providerKey, { at: scheduler.now, body, answer });
    return answer;
  }

  return {
    send(owner, request) {
      return new Promise((resolve) => {
        const sentAt = scheduler.now;
        const reply = (afterMs: number, answer: Answer) =>
          scheduler.after(afterMs, owner, `target answers: ${answer.kind}`, () => resolve(answer));
        const travels = (afterMs: number, refuses: boolean, then: (answer: Answer) => void) =>
          scheduler.after(afterMs, undefined, `request of f${request.fence} reaches the target`, () =>
            then(land(request, sentAt, refuses)),
          );
        const lagMs =
          faults.active && chance.happens(0.1) ? chance.between(200, 12_000) : chance.between(5, 200);
        const silence = () => {
          // Some clients give up, some hang until the attempt's own timeout, which only the ledger keeps.
          if (request.fence === 0 || request.mustAnswer || chance.happens(0.75))
            reply(chance.between(500, 8_000), { kind: 'ambiguous' });
        };
        if (!faults.active || !chance.happens(profile.effect)) {
          travels(lagMs, false, (answer) => void reply(lagMs, answer));
          return;
        }
        if (chance.happens(profile.effectDelay)) {
          faults.count('effect delayed');
          // Mostly within the time after which "not landed" may be believed, sometimes beyond.
          const delayMs = chance.between(1_000, chance.happens(0.8) ? request.bound : request.bound * 2);
          travels(delayMs, false, () => undefined);
          silence();
          return;
        }
        switch (chance.below(8)) {
          case 0:
            faults.count('effect lost');
            silence();
            return;
          case 1:
            faults.count('effect reply lost');
            travels(lagMs, false, () => undefined);
            silence();
            return;
          case 2:
            faults.count('effect refused');
            travels(lagMs, true, (answer) => void reply(lagMs, answer));
            return;
          case 3:
            faults.count('effect not sent');
            reply(lagMs, { kind: 'not sent' });
            return;
          case 4:
            faults.count('effect landed, then error');
            travels(lagMs, false, () => void reply(lagMs, { kind: 'ambiguous' }));
            return;
          case 5:
            faults.count('effect error, not landed');
            reply(lagMs, { kind: 'ambiguous' });
            return;
          case 6:
            faults.count('effect denied');
            reply(lagMs, { kind: 'denied' });
            return;
          default:
            travels(lagMs, false, (answer) => void reply(lagMs, answer));
        }
      });
    },
    find: (key, generation) => madeFor(log, key, generation).filter(({ seenAt }) => seenAt <= scheduler.now),
  };
}
