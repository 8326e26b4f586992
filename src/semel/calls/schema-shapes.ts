// What a schema fills in by itself is tried out once for all args of one shape, on constants of that shape instead of
// on the args of a call. So it is the same in every process, whichever call came first. Where no constants fit, or
// what is filled in depends on which args are given, each call is tried out by itself.

import type { SchemaIssue, SchemaResult, StandardSchema } from '../../core/contract/standard-schema.ts';
import {
  attempt,
  findAlternatives,
  limitTrials,
  type Reduced,
  reduce,
  TooManyTrials,
  type Try,
} from './schema-reduce.ts';
import { constants, constantsLike, type Fields, isFields, maxDepth, setAt } from './schema-trials.ts';

/** Undefined: each call by itself. A promise only for the first call of a shape. */
export type Shared = Reduced | undefined;

const known = new WeakMap<StandardSchema, Map<string, Shared | Promise<Shared>>>();
/** Maximum per schema. Beyond that they are learned again: what a shape gives does not depend on when it was learned. */
const maxShapes = 100;
/** A client chooses the names of args; longer shapes are not kept. */
const maxShapeLength = 10_000;

export function sharedTrial(schema: StandardSchema, validate: Try, input: unknown): Shared | Promise<Shared> {
  const shape = isFields(input) ? describeShape(input, 0) : undefined;
  if (shape === undefined || shape.length > maxShapeLength) return undefined;
  let shapes = known.get(schema);
  if (shapes === undefined || shapes.size > maxShapes) {
    shapes = new Map();
    known.set(schema, shapes);
  }
  if (shapes.has(shape)) return shapes.get(shape);
  const kept = shapes;
  const learning = learn(limitTrials(validate, input), input)
    .catch((error: unknown) => {
      if (error instanceof TooManyTrials) return undefined;
      throw error;
    })
    .then((shared) => {
      kept.set(shape, shared);
      return shared;
    });
  kept.set(shape, learning);
  return learning;
}

/** Names and kinds, as far as trials go into them; never a value. Undefined: it contains something that is not data. */
function describeShape(value: unknown, depth: number): string | undefined {
  if (depth > 2 * maxDepth) return undefined;
  if (Array.isArray(value)) {
    const item = value.length === 0 ? '' : describeShape(value[0], depth + 1);
    return item === undefined ? undefined : `[${item}]`;
  }
  if (isFields(value)) {
    let text = '{';
    for (const name of Object.keys(value)) {
      const member = describeShape(value[name], depth + 1);
      if (member === undefined) return undefined;
      text += `${name.length}:${name}${member},`;
    }
    return `${text}}`;
  }
  if (value === null || value instanceof Date) return value === null ? 'null' : 'Date';
  return typeof value === 'object' || typeof value === 'function' ? undefined : typeof value;
}

async function learn(validate: Try, input: unknown): Promise<Shared> {
  const found = await findConstantArgs(validate, input);
  if (found === undefined || !isFields(found.input) || !isFields(found.output)) return undefined;
  const reduced = await reduce(validate, found.input, found.output);
  return isIndependent(reduced) ? reduced : undefined;
}

/** What is filled in does not depend on which args are given. */
function isIndependent({ stuck, moving, inside }: Reduced): boolean {
  return (
    stuck.length === 0 &&
    moving.every(({ isTied }) => !isTied) &&
    inside.every(({ reduced }) => reduced === undefined || isIndependent(reduced))
  );
}

interface Leaf {
  readonly steps: readonly string[];
  values: readonly unknown[];
  at: number;
  hasAlternatives: boolean;
}

/** Args of the same shape that the schema takes, all of them constants. */
async function findConstantArgs(
  validate: Try,
  input: unknown,
): Promise<{ readonly input: unknown; readonly output: unknown } | undefined> {
  const leaves = collectLeaves(input, []);
  let tried: unknown = withFirstConstants(input, 0);
  for (let round = 0; round < maxRounds; round += 1) {
    const result: SchemaResult<unknown> = await attempt(validate, tried);
    if (result.issues === undefined) return { input: tried, output: result.value };
    const wrong = new Map<Leaf, SchemaIssue>();
    for (const issue of result.issues) {
      const leaf = leaves.find(({ steps }) => steps.every((name, at) => name === nameAt(issue, at)));
      if (leaf === undefined) return undefined;
      wrong.set(leaf, issue);
    }
    if (wrong.size === 0) return undefined;
    for (const [leaf, issue] of wrong) {
      if (!advance(leaf, issue)) return undefined;
      tried = replaceAt(tried, leaf.steps, leaf.values[leaf.at]);
    }
  }
  return undefined;
}

const maxRounds = 40;

function advance(leaf: Leaf, issue: SchemaIssue): boolean {
  leaf.at += 1;
  if (leaf.at >= leaf.values.length && !leaf.hasAlternatives) {
    leaf.hasAlternatives = true;
    leaf.values = [...leaf.values, ...findAlternatives([issue])];
  }
  return leaf.at < leaf.values.length;
}

/** The args with the first constant in each leaf. Made at once: leaf by leaf would take the square of their number. */
function withFirstConstants(value: unknown, depth: number): unknown {
  if (isBranch(value, depth)) {
    const members = Object.keys(value).sort();
    return Object.fromEntries(members.map((name) => [name, withFirstConstants(value[name], depth + 1)]));
  }
  return value === undefined ? undefined : constants[0];
}

function isBranch(value: unknown, depth: number): value is Fields {
  return isFields(value) && depth < maxDepth;
}

function constantsFor(value: unknown): readonly unknown[] {
  return [...constants, ...constantsLike(value, Array.isArray(value) ? value[0] : value)];
}

function collectLeaves(value: unknown, steps: readonly string[]): readonly Leaf[] {
  if (isBranch(value, steps.length))
    return Object.keys(value)
      .sort()
      .flatMap((name) => collectLeaves(value[name], [...steps, name]));
  if (value === undefined) return [];
  return [{ steps, values: constantsFor(value), at: 0, hasAlternatives: false }];
}

function replaceAt(value: unknown, steps: readonly string[], by: unknown): unknown {
  const [name, ...rest] = steps;
  if (name === undefined || !isFields(value)) return by;
  return setAt(value, [name], replaceAt(value[name], rest, by));
}

function nameAt({ path = [] }: SchemaIssue, at: number): PropertyKey | undefined {
  const part = path[at];
  return typeof part === 'object' ? part.key : part;
}
