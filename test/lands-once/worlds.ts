// Fake outside worlds that count what landed: one that honours no keys, one that does.

export interface Mail {
  readonly id: string;
  readonly to: string;
  readonly subject: string;
}

/** A mail server: every request is a mail. */
export function mailServer() {
  const sent: Mail[] = [];
  let losing = false;
  return {
    sent,
    /** The next mail goes out, and its sender gets a time-out. */
    loseReply() {
      losing = true;
    },
    async send(mail: Omit<Mail, 'id'>): Promise<Mail> {
      await new Promise((resolve) => setTimeout(resolve, 2));
      const out = { ...mail, id: `m-${sent.length + 1}` };
      sent.push(out);
      if (losing) {
        losing = false;
        throw Object.assign(new Error('the mail server did not answer'), { code: 'ETIMEDOUT' });
      }
      return out;
    },
  };
}

export interface Refund {
  readonly id: string;
  readonly payment: string;
  readonly minor: number;
}

/** A payment provider: a key that it has seen within its window gets the first answer again. */
export function paymentProvider({ windowMs = Number.POSITIVE_INFINITY } = {}) {
  const made: Refund[] = [];
  const byKey = new Map<string, Refund & { readonly atMs: number }>();
  let nowMs = 0;
  return {
    made,
    advanceTime(ms: number) {
      nowMs += ms;
    },
    async refund(request: Omit<Refund, 'id'>, key?: string): Promise<Refund> {
      await new Promise((resolve) => setTimeout(resolve, 2));
      const known = key === undefined ? undefined : byKey.get(key);
      if (known !== undefined && nowMs - known.atMs < windowMs) return refundOf(known);
      const refund = refundOf({ ...request, id: `re-${made.length + 1}` });
      made.push(refund);
      if (key !== undefined) byKey.set(key, { ...refund, atMs: nowMs });
      return refund;
    },
  };
}

function refundOf({ id, payment, minor }: Refund): Refund {
  return { id, payment, minor };
}
