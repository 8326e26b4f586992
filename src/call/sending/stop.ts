// A request to stop an effect. Its AbortSignal is created on demand: most effects never read it, and signals are expensive.

import { AsyncLocalStorage } from 'node:async_hooks';

export class Stop {
  reason: unknown;
  isRequested = false;
  #controller: AbortController | undefined;
  /** Abort listeners run in the context of the effect, not of the code that aborts it. */
  #inContext: ((run: () => void) => void) | undefined;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      this.#inContext = AsyncLocalStorage.snapshot();
      if (this.isRequested) this.#controller.abort(this.reason);
    }
    return this.#controller.signal;
  }

  request(reason: unknown): void {
    if (!this.isRequested) {
      this.isRequested = true;
      this.reason = reason;
    }
    this.#inContext?.(() => this.#controller?.abort(this.reason));
  }

  throwIfRequested(): void {
    if (this.isRequested) throw this.reason;
  }
}
