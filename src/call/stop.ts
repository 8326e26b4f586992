// The reason to stop, and a signal for effects that look at it: most never do, and an AbortSignal is expensive to create.

export class Stop {
  reason: unknown;
  isAsked = false;
  #controller: AbortController | undefined;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.isAsked) this.#controller.abort(this.reason);
    }
    return this.#controller.signal;
  }

  ask(reason: unknown): void {
    if (!this.isAsked) {
      this.isAsked = true;
      this.reason = reason;
    }
    this.#controller?.abort(this.reason);
  }

  throwIfAsked(): void {
    if (this.isAsked) throw this.reason;
  }
}
