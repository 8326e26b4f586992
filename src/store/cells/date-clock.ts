// The clock of a service that tells its time only in the Date header of its answers, in whole seconds. Never ahead of it:
// an answer with a later date moves the estimate forward; between answers the process's monotonic clock continues it.
// The process's own wall clock is not used.

export interface DateClock {
  /** `askedAt` and `heardAt`: the process's monotonic clock around the request. */
  learn(date: string | null, askedAt: number, heardAt: number): void;
  /** The service's time at a moment of the monotonic clock; undefined before the first answer. */
  at(mono: number): number | undefined;
}

const stepMs = 1_000;
/** How far the estimate may be behind: one step of the header, and as much for servers whose clocks differ. */
export const dateMarginMs: number = 2 * stepMs;
/** How fast two good clocks may drift apart. */
const driftPerMs = 1e-4;

export function dateClock(): DateClock {
  /** The service's clock is at least this far ahead of the monotonic one. */
  let ahead: number | undefined;
  let learntAt = 0;

  return {
    learn(date, askedAt, heardAt) {
      const told = Date.parse(date ?? '');
      if (Number.isNaN(told)) return;
      const atLeast = told - heardAt;
      const atMost = told + dateMarginMs - askedAt;
      const least = ahead === undefined ? undefined : ahead - (heardAt - learntAt) * driftPerMs;
      // It is behind the estimate even if the header was about to change and its server is slow: it was set back.
      const isSetBack = least !== undefined && atMost < least;
      if (least !== undefined && !isSetBack && atLeast < least) return;
      ahead = atLeast;
      learntAt = heardAt;
    },
    at: (mono) => (ahead === undefined ? undefined : mono + ahead),
  };
}
