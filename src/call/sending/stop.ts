// The reason to stop, and a signal for effects that look at it: most never do, and an AbortSignal is expensive to create.

import { AsyncLocalStorage } from 'node:async_hooks';

export class Stop {
  reason: unknown;
  isAsked = false;
  #controller: AbortController | undefined;
  /** Abort listeners run in the context of the effect, not of the code that aborts it. */
  #inContext: ((run: () => void) => void) | undefined;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      this.#inContext = AsyncLocalStorage.snapshot();
      if (this.isAsked) this.#controller.abort(this.reason);
    }
    return this.#controller.signal;
  }

  ask(reason: unknown): void {
    if (!this.isAsked) {
      this.isAsked = true;
      this.reason = reason;
    }
    this.#inContext?.(() => this.#controller?.abort(this.reason));
  }

  throwIfAsked(): void {
    if (this.isAsked) throw this.reason;
  }
}
