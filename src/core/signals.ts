// What a tool can say about its own effect by throwing: the only errors that speak for themselves.

/** Definitely did not land: the same call may be tried again. */
export class NotLanded extends Error {
  override readonly name = 'NotLanded';
}

/** The target definitely refused it: retrying the same request is useless. */
export class Rejected extends Error {
  override readonly name = 'Rejected';
}

/** It had landed already (a duplicate id, a unique key): that is a success, with this value. */
export class AlreadyLanded<Value = unknown> extends Error {
  override readonly name = 'AlreadyLanded';
  readonly value: Value;
  constructor(value: Value, message = 'It had landed already.') {
    super(message);
    this.value = value;
  }
}

/** Nobody knows whether it landed. */
export class MaybeLanded extends Error {
  override readonly name = 'MaybeLanded';
}

/** Part of it landed; `landed` tells which. */
export class PartialSuccess<Value = unknown> extends Error {
  override readonly name = 'PartialSuccess';
  readonly landed: Value;
  /** What ended it. Not its `cause`, whose code is not that of the whole. */
  readonly reason: unknown;
  /** What its author says to do about the part that landed. */
  readonly next: string | undefined;
  constructor(landed: Value, message = 'Only part of it landed.', reason?: unknown, next?: string) {
    super(message);
    this.landed = landed;
    this.reason = reason;
    this.next = next;
  }
}

/** It speaks for the effect whose code threw it. To the code around that effect it is an error like any other. */
export function isSignal(error: unknown): boolean {
  return [NotLanded, Rejected, AlreadyLanded, MaybeLanded, PartialSuccess].some(
    (kind) => error instanceof kind,
  );
}
