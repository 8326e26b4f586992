// The log of one worker: what it asked, what the store gave it, what its callers heard. Each line is out of the process
// before the next step, so that a kill tears nothing but the last one.

import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { openSync, writeSync } from 'node:fs';
import type { Result, ToolFunction } from '../../../src/index.ts';
import type { ClaimAnswer, SettleAnswer, SettleRequest } from '../../../src/store/index.ts';
import type { Hooks } from '../../processes/hooked-store.ts';
import type { Told, WorkEntry } from '../../support/checker/index.ts';
import type { Args, Value } from '../tools.ts';
import { asking, namespace } from './terms.ts';

export interface WorkLog {
  /** For the store that the worker calls through. */
  readonly hooks: Hooks;
  /** One call, from its start to what its caller hears. */
  call(tool: ToolFunction<Args, Value>, args: Args): Promise<Result<Value>>;
}

export function openWorkLog(path: string, worker: string): WorkLog {
  const file = openSync(path, 'a', 0o600);
  const calls = new AsyncLocalStorage<{ call: string; intent: string }>();
  /** The calls of this process that wait for an answer, and what equal ones beside them executed meanwhile. */
  const waiting = new Set<{ readonly intent: string; readonly beside: Set<string> }>();
  let count = 0;

  function write(entry: WorkEntry): void {
    writeSync(file, `${JSON.stringify(entry)}\n`);
  }

  return {
    hooks: {
      after(method, request, answer) {
        const made = calls.getStore();
        if (made === undefined) return;
        const line = { at: Date.now(), worker, namespace, intent: made.intent };
        if (method === 'claim') {
          const { won, record } = answer as ClaimAnswer;
          if (!won || record === undefined) return;
          const { key, generation, fence } = record;
          write({ ...line, kind: 'claimed', call: made.call, key, generation, fence });
        } else if (method === 'settle') {
          const { outcome, key, generation, fence } = request as SettleRequest;
          const { settled, record } = answer as SettleAnswer;
          if (!settled || record?.status !== outcome) return;
          write({ ...line, kind: 'settled', key, generation, fence, outcome });
        }
      },
    },
    async call(tool, args) {
      const { intent } = args;
      const call = `${worker}#${++count}`;
      write({
        at: Date.now(),
        worker,
        namespace,
        intent,
        kind: 'started',
        call,
        contract: tool.contract.name,
      });
      const waiter = { intent, beside: new Set<string>() };
      waiting.add(waiter);
      const result = await calls.run({ call, intent }, () => tool.try(args, asking));
      waiting.delete(waiter);
      const value = result.ok ? digest(result.value) : null;
      const told = toldBy(result, tool.contract.effect === 'write-idempotent');
      if (told === 'executed' && value !== null) {
        for (const other of waiting) if (other.intent === intent) other.beside.add(value);
      }
      // Equal calls of one process share an execution: that is no replay of what the ledger holds.
      const isShared = told === 'replayed' && value !== null && waiter.beside.has(value);
      const { key, generation, fence } = result.receipt;
      const isAboutRecord = generation > 0;
      write({
        at: Date.now(),
        worker,
        namespace,
        intent,
        kind: 'ended',
        call,
        told: isShared ? 'executed' : told,
        code: result.ok ? null : result.error.code,
        key: isAboutRecord ? key : null,
        generation: isAboutRecord ? generation : null,
        fence: isAboutRecord ? fence : null,
        value,
        effect: result.ok && typeof result.value?.effect === 'number' ? result.value.effect : null,
      });
      return result;
    },
  };
}

function toldBy(result: Result, isRepeatable: boolean): Told {
  if (result.ok) return result.receipt.executed ? 'executed' : 'replayed';
  switch (result.error.code) {
    case 'IN_DOUBT':
    case 'PARTIAL_SUCCESS':
      return 'in doubt';
    case 'FAILED':
      // Of a class that may be repeated it says only that it threw.
      if (isRepeatable) return 'nothing';
      return result.error.message.includes('Given up') ? 'given up' : 'failed';
    case 'POISON':
      return 'failed';
    case 'NOT_LANDED':
      return 'not landed';
    case 'UNRECORDED':
      return 'unrecorded';
    default:
      return 'nothing';
  }
}

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 12);
}
