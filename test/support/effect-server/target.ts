// How one target of the effect server behaves: what it commits, what it remembers of a key, and how it answers.

/** A provider's memory of idempotency keys. */
export interface KeyMemory {
  /** Counted from the first request with the key. */
  readonly windowMs: number;
  /** It also replays the errors that it answered under a key. */
  readonly keepsErrors?: boolean;
}

/** What becomes of one request. */
export interface Conduct {
  /** Whether the effect lands. */
  readonly commits: boolean;
  /** `answer` with the status; `hang` until the client gives up; `cut` the connection without a word. */
  readonly ends: 'answer' | 'hang' | 'cut';
  /** 200 where it is not given. */
  readonly status?: number;
  /** Before it commits, or refuses. */
  readonly delayMs?: number;
  /** Between the commit and the answer. */
  readonly answerAfterMs?: number;
  readonly retryAfterSeconds?: number;
}

export interface Target {
  /** Null: it does not look at keys. */
  readonly keyed: KeyMemory | null;
  /** The conduct of the first requests, one each; then that of `usually`. */
  readonly first: readonly Conduct[];
  readonly usually: Conduct;
  /** Lookups do not show what landed more recently than this. */
  readonly lookupLagMs: number;
}

const plain: Conduct = { commits: true, ends: 'answer' };

export const conducts = {
  plain,
  commitsThenHangs: { commits: true, ends: 'hang' },
  commitsThenCuts: { commits: true, ends: 'cut' },
  hangs: { commits: false, ends: 'hang' },
  cuts: { commits: false, ends: 'cut' },
  refuses: (status: number): Conduct => ({ commits: false, ends: 'answer', status }),
  commitsThenRefuses: (status: number): Conduct => ({ commits: true, ends: 'answer', status }),
  limits: (retryAfterSeconds: number): Conduct => ({
    commits: false,
    ends: 'answer',
    status: 429,
    retryAfterSeconds,
  }),
  slow: (delayMs: number, answerAfterMs = 0): Conduct => ({ ...plain, delayMs, answerAfterMs }),
} as const satisfies Record<string, Conduct | ((...args: never[]) => Conduct)>;

export function targetOf(over: Partial<Target> = {}): Target {
  return { keyed: null, first: [], usually: plain, lookupLagMs: 0, ...over };
}
