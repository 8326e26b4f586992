// One record: what is known of it, one lane per attempt, who else asked, and what to do next.

import { useState } from 'preact/hooks';
import type { HistoryEvent, RecordInfo } from '../answers.ts';
import { useData } from '../api.ts';
import { lanesOf, type Moment } from '../lanes.ts';
import { Ago, Badge, Empty, errorOf, Head, Load, sinceOf, stateOf, Text, Value } from '../parts.tsx';
import { linkTo } from '../place.ts';
import { ProviderLink } from '../provider-link.tsx';
import { ResolveDialog, verdicts } from '../resolve.tsx';
import { clock, duration, many, oneLine, secretName, shellWord, shownOwner } from '../text.ts';
import type { ViewProps } from './view.ts';

interface Answer {
  readonly record: RecordInfo;
  readonly history: readonly HistoryEvent[];
  /** As stored with the record: what its key does not cover. */
  readonly contentFields: readonly string[];
}

interface Fields {
  readonly identity?: readonly string[];
  readonly content?: readonly string[];
  readonly volatile?: readonly string[];
}

interface ToolFields {
  readonly tools: readonly { readonly name: string; readonly fields?: Fields }[];
}

export function RecordView({ namespace, params, mayDecide }: ViewProps) {
  const key = params.key ?? '';
  const loaded = useData<Answer>('/v1/record', { ref: key }, namespace);
  const tools = useData<ToolFields>('/v1/tools', {}, namespace, false);
  if (key === '') return <Empty title="No record is named in this address." />;
  const id = loaded.data?.record.id ?? key;
  return (
    <>
      <Head
        title={loaded.data === undefined ? 'Record' : <Title record={loaded.data.record} />}
        command={`semel show ${shellWord(id)} --namespace ${shellWord(namespace)}`}
      />
      <Load loaded={loaded} what="the record">
        {({ record, history, contentFields }) => (
          <Details
            record={record}
            history={history}
            namespace={namespace}
            mayDecide={mayDecide}
            contentFields={contentFields}
            fields={tools.data?.tools.find(({ name }) => name === record.contract)?.fields}
          />
        )}
      </Load>
    </>
  );
}

function Title({ record }: { readonly record: RecordInfo }) {
  return (
    <>
      <Text text={record.contract} max={64} /> <span class="ref">{record.ref}</span>{' '}
      <Badge state={stateOf(record)} />
    </>
  );
}

const sentences: Readonly<Record<ReturnType<typeof stateOf>, string>> = {
  succeeded: 'Yes, it landed',
  failed: 'No, it was refused',
  released: 'No, it did not land',
  abandoned: 'No: its process died before anything was sent',
  running: 'It is being executed',
  'in doubt': 'Nobody knows: it may have landed',
};

export function answerTo(record: RecordInfo): string {
  if (record.status === 'failed' && record.doubt) return 'It was given up, and may have landed';
  return sentences[stateOf(record)];
}

function Details(props: {
  readonly record: RecordInfo;
  readonly history: readonly HistoryEvent[];
  readonly namespace: string;
  readonly mayDecide: boolean;
  readonly contentFields: readonly string[];
  readonly fields: Fields | undefined;
}) {
  const { record, history, namespace, mayDecide, contentFields, fields } = props;
  const [isDeciding, setDeciding] = useState(false);
  const { lanes, moments } = lanesOf(record, history);
  const replays = history.filter(({ type }) => type === 'replayed');
  const drift = [...new Set(replays.flatMap(({ detail }) => driftOf(detail)))];
  const early =
    record.inDoubt && record.inFlightUntil != null && Date.parse(record.inFlightUntil) > Date.now();
  return (
    <div class="record">
      <section class={`answer ${stateOf(record).replace(' ', '-')}`}>
        <p class="said">
          {answerTo(record)}, <Ago at={sinceOf(record)} />.
        </p>
        {(record.inDoubt || record.error !== undefined) && (
          <p>
            <Text text={errorOf(record)} max={1_000} />
          </p>
        )}
        {record.inDoubt && (
          <>
            {(record.remoteRef ?? record.providerKey) !== undefined && (
              <p>
                Look for{' '}
                <code>
                  <Text text={record.remoteRef ?? record.providerKey ?? ''} max={200} />
                </code>{' '}
                at the target first.
                <ProviderLink remoteRef={record.remoteRef} />
              </p>
            )}
            {early && (
              <p>
                A request may still be on its way: "not landed" can be trusted{' '}
                <Ago at={record.inFlightUntil ?? 0} />.
              </p>
            )}
            <dl class="verdicts">
              {verdicts.map(([name, title, about]) => (
                <div key={name}>
                  <dt>{title}</dt>
                  <dd>{about}</dd>
                </div>
              ))}
            </dl>
            {mayDecide && (
              <button type="button" class="primary" data-decide onClick={() => setDeciding(true)}>
                Decide…
              </button>
            )}
          </>
        )}
      </section>

      <section>
        <h2>Attempts</h2>
        <p class="lanes-legend">
          {lanes.map((lane, n) => (
            <span key={lane.fence} class={`lane-name lane-${n % 6}`}>
              attempt {lane.attempt}{' '}
              <span class="dim">
                fence {lane.fence}
                {lane.owner === undefined ? '' : ', '}
              </span>
              {lane.owner !== undefined && (
                <span class="dim">
                  <Text text={shownOwner(lane.owner)} max={60} />
                </span>
              )}
            </span>
          ))}
        </p>
        <ol class="moments">
          {moments.map((moment, at) => (
            <MomentRow
              key={at}
              moment={moment}
              lanes={lanes.map(({ first, last }, n) =>
                moment.lane === n
                  ? `dot ${at > first ? 'up' : ''} ${at < last ? 'down' : ''}`
                  : first < at && at < last
                    ? 'line'
                    : '',
              )}
            />
          ))}
        </ol>
      </section>

      <div class="columns">
        <section>
          <h2>Arguments</h2>
          {record.args === undefined ? (
            <p class="dim">Not stored.</p>
          ) : (
            <Value value={record.args} label="Arguments" />
          )}
          {drift.length > 0 && (
            <p class="notice">
              Replays were worded differently in <Text text={drift.join(', ')} max={200} />.
            </p>
          )}
        </section>
        <section>
          <h2>Result</h2>
          {record.status !== 'succeeded' ? (
            <p class="dim">There is none: {stateOf(record)}.</p>
          ) : record.omitted !== undefined ? (
            <p class="dim">
              Not stored: <Text text={record.omitted} />
            </p>
          ) : (
            <Value value={record.value} label="Result" />
          )}
        </section>
      </div>

      <section>
        <h2>Key</h2>
        <KeyExplained record={record} contentFields={contentFields} fields={fields} />
      </section>

      <section>
        <h2>Replays</h2>
        {replays.length === 0 ? (
          <p class="dim">Nobody asked for it again.</p>
        ) : (
          <ul class="plain">
            {replays.slice(-50).map((event) => (
              <ReplayRow key={`${event.at} ${event.fence}`} event={event} />
            ))}
          </ul>
        )}
      </section>

      <section>
        <h2>Facts</h2>
        <Facts record={record} namespace={namespace} />
      </section>
      {isDeciding && (
        <ResolveDialog records={[record]} namespace={namespace} onClose={() => setDeciding(false)} />
      )}
    </div>
  );
}

function MomentRow({ moment, lanes }: { readonly moment: Moment; readonly lanes: readonly string[] }) {
  return (
    <li class={moment.isAlarm ? 'alarm' : ''}>
      {moment.at === undefined ? (
        <span class="time" title="Its time was not recorded">
          not recorded
        </span>
      ) : (
        <time dateTime={new Date(moment.at).toISOString()} title={new Date(moment.at).toISOString()}>
          {clock(moment.at)}
        </time>
      )}
      <span class="graph" aria-hidden="true">
        {lanes.map((kind, n) => (
          <span key={n} class={`lane lane-${n % 6} ${kind}`} />
        ))}
      </span>
      <span>
        <Text text={moment.what} max={600} />
      </span>
    </li>
  );
}

function driftOf({ drift }: HistoryEvent['detail']): readonly string[] {
  if (!Array.isArray(drift)) return [];
  return drift.map((field) => (field === '$command' ? 'the command line' : String(field)));
}

function ReplayRow({ event: { at, detail } }: { readonly event: HistoryEvent }) {
  const times = typeof detail.times === 'number' ? detail.times : 1;
  const who = ['conversation', 'turn', 'run', 'toolCallId', 'owner'].flatMap((name) => {
    const value = detail[name];
    if (typeof value !== 'string') return [];
    return `${name === 'toolCallId' ? 'tool call' : name} ${name === 'owner' ? shownOwner(value) : value}`;
  });
  const drift = driftOf(detail);
  return (
    <li>
      <Ago at={at} /> {times > 1 && <strong>{many(times, 'time')} </strong>}
      <span class="dim">
        <Text text={who.join(', ') || 'asker unknown'} max={300} />
      </span>
      {drift.length > 0 && (
        <span>
          {' '}
          other wording in <Text text={drift.join(', ')} max={200} />
        </span>
      )}
    </li>
  );
}

const maxFields = 30;

function argText({ args }: RecordInfo, name: string): string {
  const value = (args as Readonly<Record<string, unknown>>)[name];
  return secretName.test(name) ? '•••' : oneLine(value, 80);
}

function KeyExplained({
  record,
  contentFields,
  fields,
}: {
  readonly record: RecordInfo;
  readonly contentFields: readonly string[];
  readonly fields: Fields | undefined;
}) {
  const rest = record.key.slice(record.contract.length + 1);
  const cutAt = rest.startsWith('=') ? -1 : rest.lastIndexOf('/');
  const [period, digest] = cutAt < 0 ? [rest, ''] : [rest.slice(0, cutAt), rest.slice(cutAt + 1)];
  const meaning = rest.startsWith('=')
    ? "the caller's own key"
    : period === '-'
      ? 'its period: ever'
      : /^\d{4}-/.test(period)
        ? 'its period: the slot that it stands for'
        : 'its period: a turn, a conversation or a run, as a digest';
  const given = typeof record.args === 'object' && record.args !== null ? Object.keys(record.args) : [];
  const isNamed = (paths: readonly string[] | undefined, name: string) =>
    paths?.some((path) => path === name || path.startsWith(`${name}.`) || path.startsWith(`${name}[`)) ===
    true;
  const volatile = given.filter((name) => isNamed(fields?.volatile, name));
  const content = given.filter((name) => isNamed(contentFields, name) && !volatile.includes(name));
  const identity = given.filter((name) => ![...volatile, ...content].includes(name));
  return (
    <>
      <p class="key">
        <code>
          <Text text={record.key} max={1_000} />
        </code>
      </p>
      <dl class="facts-list">
        <dt>
          <Text text={record.contract} max={64} />
        </dt>
        <dd>the tool</dd>
        <dt>
          <Text text={period} max={300} />
        </dt>
        <dd>{meaning}</dd>
        {digest !== '' && (
          <>
            <dt>
              <Text text={digest} max={80} />
            </dt>
            <dd>
              digest of the namespace, the tool, the period and the identity arguments
              {identity.length > 0 && ':'}
            </dd>
          </>
        )}
        {(
          [
            [identity, 'identity: another value is another intent'],
            [content, 'content: may be worded differently without being another intent'],
            [volatile, 'volatile: not compared'],
          ] as const
        ).flatMap(([names, about]) =>
          names.slice(0, maxFields).map((name) => (
            <>
              <dt>
                <Text text={name} max={64} />
                {names !== volatile && (
                  <>
                    {' '}
                    <span class="dim">
                      <Text text={argText(record, name)} />
                    </span>
                  </>
                )}
              </dt>
              <dd>{about}</dd>
            </>
          )),
        )}
      </dl>
    </>
  );
}

function Facts({ record, namespace }: { readonly record: RecordInfo; readonly namespace: string }) {
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['class', `${record.effect}, version ${record.version}`],
    ['remote reference', record.remoteRef],
    ['key sent to the target', record.providerKey],
    ['error', record.error && `${record.error.code}: ${record.error.message}`],
    ['caller', record.caller],
    ['conversation', record.conversation],
    ['turn', record.turn],
    ['tool call', record.toolCallId],
    ['run', record.run],
    ['once more, because', record.again],
    ['last owner', shownOwner(record.owner)],
    ['lease', record.leaseLeftMs > 0 ? `ends in ${duration(record.leaseLeftMs)} unless renewed` : undefined],
    ['created', clock(record.createdAt)],
    ['settled', record.settledAt && clock(record.settledAt)],
    [
      'answers until',
      record.expiresAt &&
        (record.kept ? `${clock(record.expiresAt)}; its key stays for good` : clock(record.expiresAt)),
    ],
  ];
  return (
    <dl class="facts-list">
      {rows.map(([name, text]) =>
        text === undefined ? null : (
          <>
            <dt>{name}</dt>
            <dd>
              {name === 'conversation' || name === 'run' ? (
                <a href={linkTo('/search', namespace, { q: text })}>
                  <Text text={text} max={300} />
                </a>
              ) : (
                <Text text={text} max={1_000} />
              )}
              {name === 'remote reference' && <ProviderLink remoteRef={text} />}
            </dd>
          </>
        ),
      )}
    </dl>
  );
}
