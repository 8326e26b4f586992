// What a user writes to define a tool, and the types that are inferred from it.

import type { AttemptContext, Result } from '../call/index.ts';
import type { Classified } from '../core/contract/classify.ts';
import type { Contract, ContractDefinition, IfBusy } from '../core/contract/contract.ts';
import type { Seen } from '../core/contract/one-request.ts';
import type { Per } from '../core/contract/period.ts';
import type { SchemaInput, SchemaOutput, StandardSchema } from '../core/contract/standard-schema.ts';
import type { Normaliser } from '../core/key/identity.ts';
import type { Verification, VerifyContext } from '../core/verification.ts';

type Leaf =
  | string
  | number
  | boolean
  | bigint
  | symbol
  | null
  | undefined
  | Date
  | readonly unknown[]
  | ((...args: never) => unknown);

/** Dotted paths to the fields of the args, four levels deep; checked by the compiler. */
export type Path<T, Depth extends readonly unknown[] = [0, 0, 0, 0]> = unknown extends T
  ? string
  : T extends Leaf
    ? never
    : Depth extends readonly [unknown, ...infer Rest]
      ? {
          [K in keyof T & string]:
            | K
            | (NonNullable<T[K]> extends Leaf ? never : `${K}.${Path<NonNullable<T[K]>, Rest>}`);
        }[keyof T & string]
      : never;

/** What an error's own code means: `{ EAUTH: 'notLanded' }`. */
export type ClassifyTable = Readonly<Record<string, Exclude<Classified, Error>>>;

type Fields<Args> = readonly NoInfer<Path<Args>>[];

interface Definition<Args, Value, Prepared, Busy extends IfBusy, Schema>
  extends Omit<
    ContractDefinition,
    'identity' | 'content' | 'volatile' | 'strict' | 'normalize' | 'redact' | 'ifBusy' | 'effect' | 'per'
  > {
  /** For models and people. */
  readonly description?: string;
  /** Any Standard Schema: zod, valibot, arktype, … */
  readonly input?: Schema;
  /** The fields that make the intent. All others are content. */
  readonly identity?: Fields<Args>;
  /** The fields that a model may word differently for the same intent. */
  readonly content?: Fields<Args>;
  /** Content whose difference is a conflict instead of drift. */
  readonly strict?: Fields<Args>;
  /** The fields that mean nothing: timestamps, trace ids. */
  readonly volatile?: Fields<Args>;
  readonly normalize?: { readonly [P in NoInfer<Path<Args>>]?: Normaliser };
  /** Fields that are never stored. A call with such fields cannot be run again without its caller. */
  readonly redact?: Fields<Args>;
  /** What a call does while the same call is being executed. @default 'wait' */
  readonly ifBusy?: Busy;
  /** Makes what is to be sent (the model writes the mail); stored, so that a retry sends the same. */
  readonly prepare?: (args: Args, ctx: AttemptContext<undefined>) => Prepared | Promise<Prepared>;
  /** The effect. */
  readonly run: (args: Args, ctx: AttemptContext<NoInfer<Awaited<Prepared>>>) => Value | Promise<Value>;
  /** Finds out whether it landed, for a record in doubt. */
  readonly verify?: (
    args: Args,
    ctx: VerifyContext,
  ) => Verification<NoInfer<Awaited<Value>>> | Promise<Verification<NoInfer<Awaited<Value>>>>;
  /** What an error of the tool's own request means: a function, or a table by the error's `code`. */
  readonly classify?: Classify;
  /** Fetches the live value on a replay. */
  readonly onReplay?: (
    replayed: Replayed<Args, NoInfer<Awaited<Value>>>,
  ) => NoInfer<Value> | Promise<NoInfer<Awaited<Value>>>;
}

/** What an error of the tool's own request means: a function such as `oneRequest`, or a table by the error's `code`. */
export type Classify = ((error: unknown, seen: Seen) => Classified | undefined) | ClassifyTable;

export interface Replayed<Args, Value> {
  readonly args: Args;
  readonly remoteRef: string | undefined;
  readonly settledAt: Date;
  /** The stored value, if it was stored. */
  readonly stored: Value | undefined;
}

/** A tool whose effect is harmless to repeat. */
interface RepeatableTool<Args, Value, Prepared, Busy extends IfBusy, Schema>
  extends Definition<Args, Value, Prepared, Busy, Schema> {
  readonly effect: 'read' | 'write-idempotent';
  readonly per?: Per;
}

/** A tool whose effect is remembered: `per` says within what two equal calls are one. */
interface RememberedTool<Args, Value, Prepared, Busy extends IfBusy, Schema>
  extends Definition<Args, Value, Prepared, Busy, Schema> {
  readonly effect: 'write-non-idempotent' | 'irreversible';
  readonly per: Per;
}

/** `Args` is what `run` gets. */
export type ToolDefinition<
  Args,
  Value,
  Prepared = undefined,
  Busy extends IfBusy = 'wait',
  Schema = undefined,
> = RepeatableTool<Args, Value, Prepared, Busy, Schema> | RememberedTool<Args, Value, Prepared, Busy, Schema>;

/** What `run` gets: what the schema gives out, otherwise what `run` itself declares. */
export type ArgsOf<Schema, Declared> = Schema extends StandardSchema ? SchemaOutput<Schema> : Declared;

/** What a caller passes. */
export type InputOf<Schema, Declared> = Schema extends StandardSchema ? SchemaInput<Schema> : Declared;

/**
 * Values that no ledger can give back: they are used up, or are code. A response and a stream by their structure: without
 * the DOM library and @types/node, their names would mean `any`, and every value would count.
 */
type NeverStored =
  | { readonly bodyUsed: boolean; clone(): unknown }
  | { readonly locked: boolean; getReader(...args: never): unknown }
  | symbol
  | ((...args: never) => unknown)
  | Generator<unknown, unknown, never>
  | AsyncGenerator<unknown, unknown, never>;

type IsAny<T> = 0 extends 1 & T ? true : false;

/**
 * Nothing, if the value can be stored. Otherwise the fields that a definition also needs: a retry would get
 * RESULT_OMITTED instead of the value.
 */
export type Storable<Value> =
  IsAny<Value> extends true
    ? unknown
    : [Extract<Awaited<Value>, NeverStored>] extends [never]
      ? unknown
      : { readonly effect: 'read' } | { readonly result: 'reference' } | { readonly onReplay: object };

/** A call that was skipped has no value. */
export type Given<Value, Busy extends IfBusy> = Busy extends 'skip'
  ? Awaited<Value> | undefined
  : Awaited<Value>;

export interface CallOptions {
  readonly conversation?: string;
  readonly turn?: string;
  readonly run?: string;
  /** The instant that a calendar period is taken from. @default now */
  readonly at?: Date | number;
  readonly toolCallId?: string;
  /** The caller's own key, instead of one derived from the args. */
  readonly key?: string;
  /** Why it is done once more on purpose. Part of the key, and of the history. */
  readonly again?: string;
  /** An attempt that would start later is refused. */
  readonly notAfter?: Date | number;
  readonly signal?: AbortSignal;
  /** Refused where the tool has another major version. */
  readonly version?: string;
  /** What the caller is allowed to do. */
  readonly permissions?: readonly string[];
  /** Whose call it is, where the program serves several users: a record of another caller does not answer. */
  readonly caller?: string;
}

export interface ToolFunction<Input, Value> {
  /** The value, or a SemelError. */
  (args: Input, options?: CallOptions): Promise<Value>;
  /** Never throws for what can be expected. */
  try(args: Input, options?: CallOptions): Promise<Result<Value>>;
  readonly contract: Contract;
  readonly description: string | undefined;
  readonly input: StandardSchema | undefined;
}
