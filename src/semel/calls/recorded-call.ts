// The call that a record is about, for somebody else than its caller: a sweep, or an executor that reports.

import { Call, type RecordedIdentity, type Tool, unstoredMaker } from '../../call/index.ts';
import type { StoredRecord } from '../../store/store.ts';

export function toRecordedCall(tool: Tool, record: StoredRecord, args: unknown): Call {
  const parts = {
    tool,
    namespace: record.namespace,
    args,
    key: record.key,
    fingerprint: record.fingerprint,
    intent: '',
    periodEndsAt: record.retention?.periodEndsAt ?? null,
    identity: { ...recordedIdentity(record), toolCallId: record.toolCallId ?? undefined },
    again: record.again,
    notAfter: record.notAfter,
    signal: undefined,
    // It may have been settled and have expired since it was read: then it must not run.
    generation: record.generation,
  };
  // Nobody reads its errors in a terminal, so they need no store address.
  return new Call(parts, { ...unstoredMaker, content: () => record.content, storedArgs: () => record.args });
}

export function recordedIdentity({ conversation, turn, run, caller }: StoredRecord): RecordedIdentity {
  return {
    conversation: conversation ?? undefined,
    turn: turn ?? undefined,
    run: run ?? undefined,
    caller: caller ?? undefined,
  };
}
