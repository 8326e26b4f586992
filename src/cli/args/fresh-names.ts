// Names of args that stand for one request: they are made anew at each call, and no two calls share them.

const fresh =
  /^(trace|span|request|correlation|invocation|(tool[_-]?)?call)[_-]?id$|^(nonce|uuid|random|idempotency[_-]?key)$/i;

export function isFreshName(name: string): boolean {
  return fresh.test(name);
}
