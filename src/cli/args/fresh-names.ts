// Names of args that differ at each call, such as `requestId`.

const fresh =
  /^(trace|span|request|correlation|invocation|(tool[_-]?)?call)[_-]?id$|^(nonce|uuid|random|idempotency[_-]?key)$/i;

export function isFreshName(name: string): boolean {
  return fresh.test(name);
}
