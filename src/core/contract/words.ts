// The words of semel as types, one meaning each; docs/internals/glossary.md explains them.

/** How one tool's effect may be repeated. */
export type Effect = 'read' | 'write-idempotent' | 'write-non-idempotent' | 'irreversible';

export const effects: readonly Effect[] = [
  'read',
  'write-idempotent',
  'write-non-idempotent',
  'irreversible',
];

/**
 * A content field of guarded commands: a digest of the command line. A difference is reported; the args that are stored and
 * shown are those of the user, without it.
 */
export const commandField = '$command';

/** How an attempt ended: done · definitely refused · definitely did not land · nobody knows. */
export type Outcome = 'succeeded' | 'failed' | 'released' | 'unknown';

/** An attempt is running, or how the last one ended. `lapsed` is derived, never stored. */
export type Status = 'running' | Outcome;

/** The effects that are declared harmless to repeat. */
export function isRepeatable(effect: Effect): boolean {
  return effect === 'read' || effect === 'write-idempotent';
}

/** An open record follows the stricter of its stored effect and the current contract's. */
export function stricter(a: Effect, b: Effect): Effect {
  return effects.indexOf(a) >= effects.indexOf(b) ? a : b;
}
