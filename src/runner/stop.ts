// The reason to stop, and a signal for those who look at it: most effects never do, and a signal is dear to make.

export interface Stop {
  readonly reason: unknown;
  readonly isAsked: boolean;
  readonly signal: AbortSignal;
  ask(reason: unknown): void;
  throwIfAsked(): void;
}

export function createStop(): Stop {
  let controller: AbortController | undefined;
  let asked: { readonly reason: unknown } | undefined;

  return {
    get reason() {
      return asked?.reason;
    },
    get isAsked() {
      return asked !== undefined;
    },
    get signal() {
      if (controller === undefined) {
        controller = new AbortController();
        if (asked !== undefined) controller.abort(asked.reason);
      }
      return controller.signal;
    },
    ask(reason) {
      asked ??= { reason };
      controller?.abort(asked.reason);
    },
    throwIfAsked() {
      if (asked !== undefined) throw asked.reason;
    },
  };
}
