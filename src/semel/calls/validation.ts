// Checks args against the tool's schema, and tells which fields hold only what the schema fills in by itself.

import type { Contract } from '../../core/contract/contract.ts';
import type { FieldLists } from '../../core/contract/fields.ts';
import type { SchemaIssue, SchemaResult, StandardSchema } from '../../core/contract/standard-schema.ts';
import { SemelError } from '../../core/errors.ts';
import type { LeftOut } from '../../core/key/identity.ts';
import { isCurrent, type SchemaDefaults, schemaDefaults, sharedDefaults } from './schema-defaults.ts';
import { limitTrials, type Reduced, type Try } from './schema-reduce.ts';
import { sharedTrial } from './schema-shapes.ts';

export interface Validated {
  readonly args: unknown;
  /** By the lists of the contract, and of each earlier form of it. */
  readonly leftOut: ReadonlyMap<FieldLists, LeftOut>;
}

/** A promise only where the schema is one, or has to be tried out. */
export function validateArgs(
  schema: StandardSchema,
  input: unknown,
  contract: Contract,
  warnOnce: (message: string) => void = () => undefined,
): Validated | Promise<Validated> {
  const checking = checkArgs(schema, input, contract);
  return mapNow(checking, (args) => {
    // Nothing is remembered of a read, so it has no identity.
    if (contract.effect === 'read') return { args, leftOut: noneLeftOut };
    const validate: Try = async (trial) => schema['~standard'].validate(trial);
    return mapNow(sharedTrial(schema, validate, input), (shared) =>
      findLeftOut(contract, createJudge(schema, validate, input, args, shared), args, warnOnce),
    );
  });
}

const noneLeftOut: Validated['leftOut'] = new Map();

function findLeftOut(
  contract: Contract,
  judge: Judge,
  args: unknown,
  warnOnce: (message: string) => void,
): Validated | Promise<Validated> {
  const judged = (found: SchemaDefaults) => {
    warnAbout(contract.name, found, warnOnce);
    return found;
  };
  const own = mapNow(judge(contract.fields), judged);
  if (contract.was.length === 0)
    return mapNow(own, (found) => ({ args, leftOut: new Map([[contract.fields, found]]) }));
  return Promise.all(contract.was.map(async ({ fields }) => [fields, await judge(fields)] as const)).then(
    async (earlier) => ({ args, leftOut: new Map([...earlier, [contract.fields, await own]]) }),
  );
}

type Judge = (lists: FieldLists) => SchemaDefaults | Promise<SchemaDefaults>;

function createJudge(
  schema: StandardSchema,
  validate: Try,
  input: unknown,
  args: unknown,
  shared: Reduced | undefined,
): Judge {
  let alone: ReturnType<typeof schemaDefaults> | undefined;
  const judgeAlone: Judge = (lists) => {
    alone ??= schemaDefaults(limitTrials(validate, input), input, args);
    return alone(lists);
  };
  return (lists) => {
    const found = shared && sharedDefaults(input, args, lists, shared);
    if (shared === undefined || found === undefined) return judgeAlone(lists);
    const { defaults, overridden } = found;
    if (overridden.length === 0) return defaults;
    const trials = [...new Set(overridden.map(({ by }) => by))];
    return mapNow(awaitAll(trials.map(({ base }) => validateNow(schema, base))), (results) =>
      overridden.every((each) => isCurrent(each, results[trials.indexOf(each.by)] as SchemaResult<unknown>))
        ? defaults
        : judgeAlone(lists),
    );
  };
}

function awaitAll<T extends object>(
  values: readonly (T | Promise<T>)[],
): readonly T[] | Promise<readonly T[]> {
  return values.some((value) => value instanceof Promise) ? Promise.all(values) : (values as readonly T[]);
}

/** A schema that threw has not filled anything in. */
function validateNow(
  schema: StandardSchema,
  input: unknown,
): SchemaResult<unknown> | Promise<SchemaResult<unknown>> {
  const refused = () => ({ issues: [] });
  try {
    const result = schema['~standard'].validate(input);
    return 'then' in result ? Promise.resolve(result).catch(refused) : result;
  } catch {
    return refused();
  }
}

/** At once where it is there. */
function mapNow<T, U>(value: T | Promise<T>, then: (value: T) => U | Promise<U>): U | Promise<U> {
  return value instanceof Promise ? value.then(then) : then(value);
}

/** What the schema makes of the args. */
export function checkArgs(
  schema: StandardSchema,
  input: unknown,
  contract: Contract,
): unknown | Promise<unknown> {
  const threw = (cause: unknown): never => {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new SemelError('INVALID_ARGS', `${contract.name}: its schema threw on these args (${message}).`, {
      path: 'args',
      cause,
    });
  };
  let result: SchemaResult<unknown> | Promise<SchemaResult<unknown>>;
  // A schema's transforms may also throw: then the args do not fit it either.
  try {
    result = schema['~standard'].validate(input);
  } catch (cause) {
    return threw(cause);
  }
  const checked = (found: SchemaResult<unknown>) => {
    if (found.issues !== undefined) throw invalidArgs(contract.name, found.issues);
    return found.value;
  };
  return 'then' in result ? Promise.resolve(result).catch(threw).then(checked) : checked(result);
}

function warnAbout(
  name: string,
  { fresh, stuck, whole, isTooMuch }: SchemaDefaults,
  warnOnce: (message: string) => void,
): void {
  if (isTooMuch)
    warnOnce(
      `${name}: these args have so many members that semel cannot tell which of them hold a default of the schema. So all identity fields are in the key.`,
    );
  for (const steps of fresh)
    warnOnce(
      `${name}: the schema fills \`${steps.join('.')}\` in with something else each time, so it is left out of the identity. Name it in \`volatile\`.`,
    );
  for (const steps of whole)
    warnOnce(
      `${name}: \`${steps.join('.')}\` may also be something other than an object, or needs other args, so all defaults that the schema fills in there are in the key. Name the earlier form in \`was\` when you add a field with a default to it.`,
    );
  for (const steps of stuck)
    warnOnce(
      `${name}: semel cannot tell which fields hold a default of the schema, since they may depend on \`${steps.join('.')}\`, which semel cannot try other values for. So all identity fields are in the key: name the earlier form in \`was\` when you add a field with a default.`,
    );
}

function invalidArgs(name: string, issues: readonly SchemaIssue[]): SemelError {
  const shown = issues.slice(0, 3).map((issue) => `${formatPath(issue)}: ${issue.message}`);
  return new SemelError('INVALID_ARGS', `${name}: the args do not fit its schema (${shown.join('; ')}).`, {
    path: issues[0] === undefined ? 'args' : formatPath(issues[0]),
  });
}

function formatPath({ path }: SchemaIssue): string {
  let text = 'args';
  for (const part of path ?? []) {
    const key = typeof part === 'object' ? part.key : part;
    text += typeof key === 'number' ? `[${key}]` : `.${String(key)}`;
  }
  return text;
}
