// Names of args whose values tend to change between two calls of one intent: written by a model, or made for one call. In a key
// they are the usual cause of a second effect. A name is a hint, never a rule.

/** A model words it differently each time. */
export function looksReworded(name: string): boolean {
  return reworded.test(name);
}

/** Made for one call. */
export function looksFresh(name: string): boolean {
  return fresh.test(name);
}

const reworded =
  /^(reason|body|text|message|subject|description|comment|notes?|summary|content|markdown|md|html|draft|output|explanation|rationale|justification|caption|prompt|answer|reply)$/i;

const fresh =
  /^(timestamp|ts|now|time|(requested|generated|called|sent)_?at|(trace|span|request|correlation|invocation|(tool[_-]?)?call)[_-]?id|nonce|uuid|random|idempotency[_-]?key)$/i;
