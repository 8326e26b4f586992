// What a user tells landsOnce about a tool and the world it acts on.

import type { CallOptions } from '../../semel/index.ts';

export interface LandsOnceOptions<Input> {
  /** Counts what has landed so far in the fake, or in the outside world. */
  readonly effects: () => number | Promise<number>;
  /** The same intent in other words: what a model says when it plans once more. */
  readonly reword?: (args: Input) => Input;
  /** A different intent, which must run; or a function that makes it from the args. */
  readonly otherArgs?: Input | ((args: Input) => Input);
  /** Who calls. A function makes them for each call, as your own code does. @default an identity of its own */
  readonly call?: CallOptions | ((args: Input) => CallOptions);
  /** Lets the next effect of your fake land and then fail, as a time-out does. Not needed where `run` uses fetch. */
  readonly loseReply?: () => void | Promise<void>;
  /** Moves the clock of your fake provider forward, so that it forgets keys as the real one does. */
  readonly advanceTime?: (ms: number) => void | Promise<void>;
}
