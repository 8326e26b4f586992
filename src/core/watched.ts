// Promises that know whether anybody awaits them, so that an error nobody would see is reported elsewhere.

export class Watched<Value> extends Promise<Value> {
  /** Somebody gets its value or its error: `await`, `then`, `catch` and `Promise.all` all ask here. */
  isHeard = false;

  /** Promises derived from it are plain promises. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  static of<Value>(promise: Promise<Value>): Watched<Value> {
    const watched = new Watched<Value>((resolve, reject) => {
      promise.then(resolve, reject);
    });
    // Otherwise an error that is heard of late, or reported elsewhere, would end the process.
    Promise.prototype.then.call(watched, undefined, () => undefined);
    return watched;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is a promise.
  override then<Then = Value, Catch = never>(
    onValue?: ((value: Value) => Then | PromiseLike<Then>) | null,
    onError?: ((reason: unknown) => Catch | PromiseLike<Catch>) | null,
  ): Promise<Then | Catch> {
    this.isHeard = true;
    return super.then(onValue, onError);
  }
}

/** The steps of one run. */
export class Watch {
  readonly #pending = new Set<Promise<unknown>>();
  readonly #failed: { readonly step: Watched<unknown>; readonly error: unknown }[] = [];

  /** For the caller; `finish` reports an error that the caller does not wait for. */
  of<Value>(taking: Promise<Value>): Promise<Value> {
    const step = Watched.of(taking);
    this.#pending.add(taking);
    taking.then(
      () => this.#pending.delete(taking),
      (error: unknown) => {
        this.#pending.delete(taking);
        this.#failed.push({ step, error });
      },
    );
    return step;
  }

  /** Waits for all, then throws the first error that nobody has heard of. */
  async finish(): Promise<void> {
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
    const unheard = this.#failed.find(({ step }) => !step.isHeard);
    if (unheard !== undefined) throw unheard.error;
  }
}
