// The way to the server: made on first use, and where it is ours, made anew when nothing has come back on it for too
// long. A driver waits for ever on a connection that was lost without a word, and everything after it waits too.

import type { Clock } from '../../core/clock.ts';
import { isRecordDamage } from '../../store/damage.ts';
import { inTime } from '../../store/remote/in-time.ts';
import type { Connection } from './client.ts';
import { replyCodeOf } from './failure.ts';

export interface WayOptions {
  readonly connect: () => Promise<Connection>;
  /** Else it is the user's to repair. */
  readonly isOurs: boolean;
  readonly clock: Clock;
  readonly timeoutMs: number;
}

export interface Way {
  connection(): Promise<Connection>;
  ask<T>(question: (connection: Connection) => Promise<T>): Promise<T>;
  end(): Promise<void>;
}

export function wayTo({ connect, isOurs, clock, timeoutMs }: WayOptions): Way {
  let connecting: Promise<Connection> | undefined;
  let failingSince: number | undefined;

  function connection(): Promise<Connection> {
    if (connecting !== undefined) return connecting;
    const made = connect();
    connecting = made;
    made.catch(() => forget(made));
    return made;
  }

  function forget(made: Promise<Connection>): void {
    if (connecting === made) connecting = undefined;
  }

  return {
    connection,
    async ask(question) {
      const askedAt = clock.mono();
      const asked = connection();
      try {
        const answer = await inTime(asked.then(question), clock, timeoutMs);
        failingSince = undefined;
        return answer;
      } catch (error) {
        if (replyCodeOf(error) !== undefined || isRecordDamage(error)) failingSince = undefined;
        else if (isOurs) {
          failingSince ??= askedAt;
          if (clock.mono() - failingSince >= timeoutMs && connecting === asked) {
            failingSince = undefined;
            forget(asked);
            // What else waits on it is told that it failed, and asked again by its token.
            asked.then((lost) => lost.end()).catch(() => {});
          }
        }
        throw error;
      }
    },
    async end() {
      const reached = await connecting?.catch(() => undefined);
      await reached?.end();
    },
  };
}
