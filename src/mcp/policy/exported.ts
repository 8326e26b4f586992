// Writes the policy file for a program's tools: those that `semel.tool` made, and policies as `guard` takes them. Reports
// what a file cannot hold, such as functions.

import { type Contract, defineContract } from '../../core/contract/contract.ts';
import type { Duration } from '../../core/contract/duration.ts';
import { isCalendarPeriod, type Per } from '../../core/contract/period.ts';
import { SemelError } from '../../core/errors.ts';
import { isSemelTool } from '../../guard/index.ts';
import { asRecord } from '../protocol/messages.ts';
import { type FilePolicy, type PolicyFile, readPolicyFile, toolFields } from './policies.ts';

export interface Exported {
  readonly file: PolicyFile;
  /** What the file cannot hold, as `send.verify`. */
  readonly leftOut: readonly string[];
}

export function exportPolicies(exports: object, name: string): Exported {
  const tools: Record<string, string | FilePolicy> = Object.create(null);
  const leftOut: string[] = [];
  const add = (tool: string, policy: string | FilePolicy) => {
    if (Object.hasOwn(tools, tool) && JSON.stringify(tools[tool]) !== JSON.stringify(policy))
      throw new SemelError('CONTRACT_INVALID', `${name}: there are two policies for ${tool}.`, {
        path: tool,
        next: 'Remove one of them.',
      });
    tools[tool] = policy;
  };
  for (const each of new Set(Object.values(exports).flatMap(withParts))) {
    if (!isSemelTool(each)) continue;
    const { contract } = each;
    add(contract.name, policyOf(contract));
    leftOut.push(...unsaid(contract).map((field) => `${contract.name}.${field}`));
  }
  for (const [tool, policy] of Object.entries(asRecord(asRecord(exports).policies))) {
    if (isSemelTool(policy)) continue;
    if (typeof policy === 'string') add(tool, policy);
    else {
      const { per, ...terms } = asRecord(policy);
      const known = Object.entries(terms).filter(([field]) => isHeld(field));
      add(tool, {
        ...Object.fromEntries(known),
        ...(per === undefined ? {} : { per: perIn(per as Per) }),
      } as FilePolicy);
      const others = Object.keys(terms).filter((field) => !isHeld(field));
      leftOut.push(...others.map((field) => `${tool}.${field}`));
    }
  }
  if (Object.keys(tools).length === 0)
    throw new SemelError('INVALID_ARGS', `${name} exports no tools.`, {
      next: 'Export what `semel.tool` made, or an object `policies`.',
    });
  const file = { version: 1, tools: { ...tools } } as const;
  return { file: readPolicyFile(JSON.stringify(file), name), leftOut };
}

/** `provider` is left out: a program passes the key itself, but a proxy would trust the server to do so. */
function isHeld(field: string): boolean {
  return field !== 'provider' && toolFields.has(field);
}

/** A tool, or an object or list of them. */
function withParts(value: unknown): readonly unknown[] {
  return typeof value === 'object' && value !== null ? Object.values(value) : [value];
}

/** Leaves defaults out: people read the file. */
function policyOf(contract: Contract): string | FilePolicy {
  const { name, effect, per, fields, strict, redact, share } = contract;
  if (effect === 'read') return effect;
  const usual = defineContract({ name, effect, per }, { hasVerify: false, hasPrepare: false });
  const durations = (['window', 'failureWindow', 'weakWindow', 'lease', 'timeout'] as const).flatMap(
    (field) => {
      const ms = contract[`${field}Ms`];
      return ms === usual[`${field}Ms`] || ms === null ? [] : [[field, written(ms)] as const];
    },
  );
  const { identity, content, volatile } = fields;
  return {
    effect,
    ...(effect === 'write-idempotent' ? {} : { per: perIn(per) }),
    ...(identity === undefined ? {} : { identity }),
    ...(content.length === 0 ? {} : { content }),
    ...(volatile.length === 0 ? {} : { volatile }),
    ...(strict.length === 0 ? {} : { strict }),
    ...Object.fromEntries(durations),
    ...(redact.length === 0 ? {} : { redact }),
    ...(share ? { share } : {}),
  };
}

function unsaid({ normalize, provider, permissions, was, retry }: Contract): readonly string[] {
  const has = {
    normalize: Object.keys(normalize).length > 0,
    provider: provider !== undefined,
    permissions: permissions.length > 0,
    was: was.length > 0,
    retry: retry.tries > 1,
  };
  return Object.entries(has).flatMap(([field, isThere]) => (isThere ? [field] : []));
}

function perIn(per: Per): NonNullable<FilePolicy['per']> {
  if (isCalendarPeriod(per)) return { [per.unit]: per.zone };
  return typeof per === 'number' ? (written(per) as Duration) : per;
}

const units = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const;

function written(ms: number): Duration | 'none' {
  if (!Number.isFinite(ms)) return 'none';
  const [unit, length] = Object.entries(units).find(([, each]) => ms % each === 0) ?? ['ms', 1];
  return `${ms / length}${unit as keyof typeof units}`;
}
