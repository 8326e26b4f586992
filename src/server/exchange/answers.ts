// What endpoints answer, as JSON Schema: for the OpenAPI document. The tests check real answers by them.

import type { JsonSchema } from './schema.ts';

const text = { type: 'string' };
const count = { type: 'integer' };
const flag = { type: 'boolean' };
const instant = { type: 'string', format: 'date-time' };

function about(type: object, description: string): JsonSchema {
  return { ...type, description };
}

function object(required: Record<string, JsonSchema>, optional: Record<string, JsonSchema> = {}): JsonSchema {
  return { type: 'object', properties: { ...required, ...optional }, required: Object.keys(required) };
}

const listOf = (items: JsonSchema): JsonSchema => ({ type: 'array', items });

/** Named once in the document, and referred to. */
export const namedSchemas: Readonly<Record<string, JsonSchema>> = {
  Receipt: object(
    {
      contract: text,
      key: about(text, 'The key of its record.'),
      id: about(text, 'The short name of its record.'),
      fence: about(count, 'Grows with each claim and decision.'),
      generation: count,
      attempt: count,
      executed: flag,
      replayed: flag,
    },
    {
      settledAt: instant,
      drift: about(listOf(text), 'The fields in which a replay was worded differently.'),
      remoteRef: about(text, 'The id that the target gave it.'),
      omitted: about(text, 'Why there is no value.'),
      weak: about(flag, 'The turn was guessed.'),
      acceptedRepeat: flag,
    },
  ),
  Record: object(
    {
      id: text,
      ref: about(text, 'What /v1/resolve, /v1/forget and /v1/reopen take: the record as it is now.'),
      namespace: text,
      contract: about(text, 'The tool.'),
      key: text,
      status: { enum: ['running', 'succeeded', 'failed', 'released', 'unknown'] },
      inDoubt: about(flag, 'It may have landed, and needs a decision.'),
    },
    {
      args: {},
      value: {},
      omitted: text,
      remoteRef: text,
      providerKey: about(text, 'The key that its provider was sent.'),
      error: object({ message: text }, { code: text, retriable: flag }),
      attempts: count,
      fence: count,
      generation: count,
      owner: text,
      lapsed: about(flag, 'Its lease is over.'),
      leaseLeftMs: { type: ['integer', 'null'] },
      expired: flag,
      createdAt: instant,
      updatedAt: instant,
      settledAt: instant,
      expiresAt: instant,
      conversation: text,
      turn: text,
      run: text,
      toolCallId: text,
      caller: text,
    },
  ),
  Event: object({
    at: about(count, 'Milliseconds since 1970.'),
    type: text,
    key: text,
    namespace: text,
    generation: count,
    fence: count,
    detail: { type: 'object' },
  }),
};

const receipt = { $ref: '#/components/schemas/Receipt' };
const record = { $ref: '#/components/schemas/Record' };

const attempt = about(text, 'Shows that the attempt is yours: for renew, dispatch, step and settle.');
const claim = {
  claimed: about(flag, 'False: nothing is recorded of a read, and nothing has to be reported.'),
  number: about(count, 'The attempt at this intent, from 1.'),
  fence: count,
  recordKey: text,
  recordId: text,
  leaseMs: about(count, 'Renew it every third of this time.'),
  timeoutMs: count,
};

const replay = object(
  { outcome: { const: 'replay' }, receipt },
  {
    value: about({}, 'What it returned.'),
    traceparent: about(text, 'For a request with the header `traceparent`: the span that did the work.'),
  },
);

const begin: JsonSchema = {
  oneOf: [
    object(
      { outcome: { const: 'execute' }, attempt },
      {
        args: about({}, 'Execute with these.'),
        key: about(text, 'For the target: the same for every attempt.'),
        prepared: about({}, 'What an attempt before was about to send.'),
        ...claim,
      },
    ),
    replay,
  ],
};

const slot = { job: text, slot: text, key: text };

const beginJob: JsonSchema = {
  oneOf: [
    object(
      { outcome: { const: 'execute' }, lock: text, attempt },
      { ...slot, run: text, periodsAt: instant, ...claim },
    ),
    object({ outcome: { enum: ['skipped', 'busy'] } }, { ...slot, value: {}, holder: text, receipt }),
  ],
};

const page = object(
  { items: listOf(record) },
  {
    next: about(text, 'For `after`: there are more.'),
    damaged: listOf(object({ namespace: text, key: text, problem: text })),
  },
);

const decided = object({ record }, { isShort: flag });

export const answers = {
  begin,
  beginJob,
  renew: object({ held: { const: true }, leaseMs: count }),
  dispatch: object({ dispatched: { const: true } }),
  handoff: object({ handoff: text }),
  settle: object(
    {
      outcome: { const: 'settled' },
      recorded: about(flag, 'False: the record says otherwise, or nothing is recorded.'),
    },
    { value: {}, receipt, isShort: about(flag, 'The batch was too long for the value.') },
  ),
  tools: object({
    tools: listOf(object({ name: text, effect: text }, { source: text, per: text, leaseMs: count })),
  }),
  records: page,
  record: object({ record, history: listOf({ $ref: '#/components/schemas/Event' }) }),
  doubts: page,
  groups: object(
    { groups: listOf(object({ contract: text, error: text, refs: listOf(text) })) },
    { isCut: about(flag, 'No more doubts were read: there may be more.') },
  ),
  decided,
  login: object({
    code: about(text, 'For the address of the dashboard: `#login=<code>`.'),
    expiresAt: instant,
  }),
  session: object({ session: text, name: text, role: text, namespace: text, expiresAt: instant }),
  health: object({ status: text }),
} as const satisfies Readonly<Record<string, JsonSchema>>;
