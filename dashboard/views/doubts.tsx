// In doubt: what needs a person, grouped by tool and error, because what has one cause can be decided at once. The server counts the
// first 10,000, of all tools or of the chosen one, and the page says when there may be more. Of the records, the first are shown.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { RecordInfo } from '../answers.ts';
import { get, useData } from '../api.ts';
import { Ago, Badge, Empty, errorOf, Head, Load, Problem, sinceOf, Text } from '../parts.tsx';
import { linkTo } from '../place.ts';
import { ProviderLink } from '../provider-link.tsx';
import { ResolveDialog } from '../resolve.tsx';
import { many, oneLine, shellWord } from '../text.ts';
import type { ViewProps } from './view.ts';

interface Group {
  readonly contract: string;
  readonly error: string;
  readonly count: number;
  /** There may be more: not all of them were counted. */
  readonly isLeast: boolean;
  /** Changes with the records that were counted, and with nothing else. */
  readonly version: string;
  /** Those that were read so far. */
  readonly members: readonly RecordInfo[];
}

interface Page {
  readonly items: readonly RecordInfo[];
  readonly next?: string;
}

interface Groups {
  readonly groups: readonly {
    readonly contract: string;
    readonly error: string;
    readonly refs: readonly string[];
  }[];
  readonly isCut?: true;
}

const byAge = (a: RecordInfo, b: RecordInfo) => (sinceOf(a) < sinceOf(b) ? -1 : 1);

/** Those that were counted, and those that only the records show. */
function groupsOf(
  counted: Groups | undefined,
  items: readonly RecordInfo[],
  tool: string | undefined,
  error: string | undefined,
): readonly Group[] {
  const groups = new Map<
    string,
    { contract: string; error: string; refs?: readonly string[]; members: RecordInfo[] }
  >();
  for (const { contract, error: text, refs } of counted?.groups ?? [])
    groups.set(`${contract}\n${text}`, { contract, error: text, refs, members: [] });
  for (const item of items) {
    const [contract, text] = [item.contract, errorOf(item)];
    const name = `${contract}\n${text}`;
    const group = groups.get(name) ?? { contract, error: text, members: [] };
    groups.set(name, group);
    group.members.push(item);
  }
  return [...groups.values()]
    .filter((each) => (tool ?? each.contract) === each.contract && (error ?? each.error) === each.error)
    .map(({ refs, members, ...group }) => ({
      ...group,
      count: Math.max(refs?.length ?? 0, members.length),
      isLeast: refs === undefined || counted?.isCut === true,
      version: (refs ?? members.map(({ ref }) => ref)).join(),
      members: members.sort(byAge),
    }))
    .sort((a, b) => b.count - a.count);
}

const countOf = ({ count, isLeast }: Group) => `${count.toLocaleString('en')}${isLeast ? '+' : ''}`;

/** All of a group, page by page. */
async function readGroup(
  { contract, error }: Pick<Group, 'contract' | 'error'>,
  namespace: string,
  signal: AbortSignal,
): Promise<readonly RecordInfo[]> {
  const found: RecordInfo[] = [];
  for (let after: string | undefined; ; ) {
    const page = await get<Page>('/v1/doubts', { tool: contract, limit: '500', after }, namespace, signal);
    found.push(...page.items.filter((item) => errorOf(item) === error));
    if (page.next === undefined) return found.sort(byAge);
    after = page.next;
  }
}

const shownAtFirst = 10;
/** A longer one is cut in the command. */
const maxError = 160;

export function Doubts({ namespace, params, mayDecide }: ViewProps) {
  const { tool, error } = params;
  const counted = useData<Groups>('/v1/doubts/groups', { tool }, namespace);
  const loaded = useData<Page>('/v1/doubts', { tool, limit: '100' }, namespace);
  const [deciding, setDeciding] = useState<readonly RecordInfo[] | undefined>(undefined);
  const [reading, setReading] = useState<Group | undefined>(undefined);
  const [problem, setProblem] = useState<Error | undefined>(undefined);
  const command = [
    'semel doubt',
    ...(tool === undefined ? [] : [`--tool ${shellWord(tool)}`]),
    ...(error === undefined
      ? []
      : [`--error ${shellWord(error.length > maxError ? `${error.slice(0, maxError)}*` : error)}`]),
    `--namespace ${shellWord(namespace)}`,
  ].join(' ');
  const groups = useMemo(
    () => groupsOf(counted.data, loaded.data?.items ?? [], tool, error),
    [counted.data, loaded.data, tool, error],
  );
  const stop = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => stop.current?.abort(), [tool, error]);
  const decideAll = (group: Group) => {
    stop.current?.abort();
    stop.current = new AbortController();
    const { signal } = stop.current;
    setProblem(undefined);
    setReading(group);
    readGroup(group, namespace, signal)
      .then(
        (records) => signal.aborted || setDeciding(records.filter(({ inDoubt }) => inDoubt)),
        (failed: Error) => signal.aborted || setProblem(failed),
      )
      .finally(() => setReading((now) => (now === group ? undefined : now)));
  };
  return (
    <>
      <Head title="In doubt" command={command}>
        <p class="lead">
          These may have landed. semel neither repeats nor drops them: look at the target, then say what
          happened.
        </p>
        {(tool !== undefined || error !== undefined) && (
          <p class="filters">
            {tool !== undefined && (
              <span class="chip">
                tool <Text text={tool} />
              </span>
            )}
            {error !== undefined && (
              <span class="chip">
                error <Text text={error} max={60} />
              </span>
            )}
            <a href={linkTo('/doubts', namespace)}>show all</a>
          </p>
        )}
      </Head>
      {problem !== undefined && <Problem problem={problem} />}
      <Load loaded={counted} what="what is in doubt">
        {({ isCut }) => (
          <>
            {isCut && (
              <p class="notice">
                Only the first 10,000 were counted: there may be more.
                {tool === undefined && ' Choose one tool.'}
              </p>
            )}
            {groups.length === 0 && !isCut && !counted.isOld && (
              <Empty
                title={`Nothing${tool === undefined ? '' : ` of ${tool}`}${error === undefined ? '' : ' with this error'} is in doubt in ${namespace}.`}
              >
                {tool !== undefined || error !== undefined ? (
                  <p>
                    A filter is set. <a href={linkTo('/doubts', namespace)}>Show everything in doubt</a>
                  </p>
                ) : (
                  <p>
                    Every effect is accounted for.{' '}
                    <a href={linkTo('/overview', namespace)}>See what was executed</a>
                  </p>
                )}
              </Empty>
            )}
            {groups.map((group) => (
              <GroupCard
                key={`${group.contract}\n${group.error}`}
                group={group}
                namespace={namespace}
                mayDecide={mayDecide}
                isReading={reading !== undefined}
                onDecide={setDeciding}
                onDecideAll={decideAll}
              />
            ))}
          </>
        )}
      </Load>
      {deciding !== undefined && deciding.length > 0 && (
        <ResolveDialog records={deciding} namespace={namespace} onClose={() => setDeciding(undefined)} />
      )}
    </>
  );
}

function GroupCard(props: {
  readonly group: Group;
  readonly namespace: string;
  readonly mayDecide: boolean;
  readonly isReading: boolean;
  readonly onDecide: (records: readonly RecordInfo[]) => void;
  readonly onDecideAll: (group: Group) => void;
}) {
  const { group, namespace, mayDecide, isReading, onDecide, onDecideAll } = props;
  const { contract, error, count, version } = group;
  const [isOpen, setOpen] = useState(false);
  const [whole, setWhole] = useState<readonly RecordInfo[] | undefined>(undefined);
  const isPart = group.isLeast || group.members.length < count;
  useEffect(() => {
    if (!isOpen || !isPart) {
      setWhole(undefined);
      return undefined;
    }
    const stop = new AbortController();
    const { signal } = stop;
    readGroup({ contract, error }, namespace, signal).then(
      (records) => signal.aborted || setWhole(records),
      () => undefined,
    );
    return () => stop.abort();
  }, [isOpen, isPart, contract, error, version, namespace]);
  const members = whole ?? group.members;
  const shown = isOpen ? members : members.slice(0, shownAtFirst);
  return (
    <section class="group">
      <header>
        <h2>
          <a href={linkTo('/doubts', namespace, { tool: contract })}>
            <Text text={contract} max={64} />
          </a>
          <span class="count">{countOf(group)}</span>
        </h2>
        <p class="error">
          <a href={linkTo('/doubts', namespace, { tool: contract, error })}>
            <Text text={error} max={400} />
          </a>
        </p>
        {mayDecide && (count > 1 || group.isLeast) && (
          <button type="button" disabled={isReading} onClick={() => onDecideAll(group)}>
            {isReading ? 'Reading them…' : `Decide all ${countOf(group)}…`}
          </button>
        )}
      </header>
      <ul class="rows">
        {shown.map((record) => (
          <li key={record.key}>
            <a class="row" data-row href={linkTo('/record', namespace, { key: record.key })}>
              <span class="ref">{record.ref}</span>
              <span class="what">
                <Text text={record.args === undefined ? 'args not stored' : oneLine(record.args)} />
              </span>
              <span class="facts">
                {record.abandoned && <Badge state="abandoned" />}
                {record.attempts > 1 && <span>{many(record.attempts, 'attempt')}</span>}
                {record.remoteRef !== undefined && (
                  <span>
                    sent as <Text text={record.remoteRef} max={40} />
                  </span>
                )}
                <Ago at={sinceOf(record)} word="for" />
              </span>
            </a>
            <ProviderLink remoteRef={record.remoteRef} />
            {mayDecide && record.inDoubt && (
              <button
                type="button"
                data-decide
                onClick={() => onDecide([record])}
                aria-label={`Decide ${record.ref}`}
              >
                Decide…
              </button>
            )}
          </li>
        ))}
      </ul>
      {(group.isLeast ||
        (count > Math.min(shownAtFirst, shown.length) && (count > shownAtFirst || isPart))) && (
        <button type="button" class="quiet more" onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Show fewer' : `Show all ${countOf(group)}`}
        </button>
      )}
    </section>
  );
}
