// The reason to stop, and a signal for effects that look at it: most never do, and an AbortSignal is expensive to create.

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

  ask(reason: unknown): void {
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
