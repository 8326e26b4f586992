// The words of semel, one meaning each; code, errors, docs and pages use these and no others.
// docs/glossary.md tells them to people; this file tells them to the compiler.

/** How one tool's effect may be repeated. */
export type Effect = 'read' | 'write-idempotent' | 'write-non-idempotent' | 'irreversible';

export const effects: readonly Effect[] = [
  'read',
  'write-idempotent',
  'write-non-idempotent',
  'irreversible',
];

/** An attempt's ending: done · definitely refused · definitely did not land · nobody knows. */
export type Outcome = 'succeeded' | 'failed' | 'released' | 'unknown';

/** A record's status: an attempt is under way, or how the last one ended. `lapsed` is derived, never stored. */
export type Status = 'running' | Outcome;

/** The effects that are declared harmless to repeat. */
export function isRepeatable(effect: Effect): boolean {
  return effect === 'read' || effect === 'write-idempotent';
}

/** The class that forbids more: open records are judged by the stricter of what was stored and what is declared now. */
export function stricter(a: Effect, b: Effect): Effect {
  return effects.indexOf(a) >= effects.indexOf(b) ? a : b;
}
