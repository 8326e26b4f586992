// The reason to stop, and a signal for those who look at it: most effects never do, and a signal is dear to make.

export interface Stop {
  readonly reason: unknown;
  readonly isAsked: boolean;
  signal(): AbortSignal;
  ask(reason: unknown): void;
  throwIfAsked(): void;
}

export function createStop(): Stop {
  let controller: AbortController | undefined;
  const stop = {
    reason: undefined as unknown,
    isAsked: false,
    signal() {
      if (controller === undefined) {
        controller = new AbortController();
        if (stop.isAsked) controller.abort(stop.reason);
      }
      return controller.signal;
    },
    ask(reason: unknown) {
      if (!stop.isAsked) {
        stop.isAsked = true;
        stop.reason = reason;
      }
      controller?.abort(stop.reason);
    },
    throwIfAsked() {
      if (stop.isAsked) throw stop.reason;
    },
  };
  return stop;
}
