// In doubt: what needs a person, grouped by tool and error, because what has one cause can be decided at once.

import { useMemo, useState } from 'preact/hooks';
import type { RecordInfo } from '../answers.ts';
import { useData } from '../api.ts';
import { Ago, Badge, Empty, errorOf, Head, Load, sinceOf, Text } from '../parts.tsx';
import { linkTo } from '../place.ts';
import { ResolveDialog } from '../resolve.tsx';
import { many, oneLine, shellWord } from '../text.ts';
import type { ViewProps } from './view.ts';

interface Group {
  readonly contract: string;
  readonly error: string;
  readonly members: readonly RecordInfo[];
}

interface Page {
  readonly items: readonly RecordInfo[];
  readonly next?: string;
}

function groupsOf(items: readonly RecordInfo[], error: string | undefined): readonly Group[] {
  const groups = new Map<string, { contract: string; error: string; members: RecordInfo[] }>();
  for (const item of items) {
    const text = errorOf(item);
    if (error !== undefined && text !== error) continue;
    const name = JSON.stringify([item.contract, text]);
    const group = groups.get(name) ?? { contract: item.contract, error: text, members: [] };
    group.members.push(item);
    groups.set(name, group);
  }
  for (const { members } of groups.values()) members.sort((a, b) => (sinceOf(a) < sinceOf(b) ? -1 : 1));
  return [...groups.values()].sort((a, b) => b.members.length - a.members.length);
}

const shownAtFirst = 10;

export function Doubts({ namespace, params, mayDecide }: ViewProps) {
  const { tool, error } = params;
  const loaded = useData<Page>('/v1/doubts', { tool, limit: '500' }, namespace);
  const [deciding, setDeciding] = useState<readonly RecordInfo[] | undefined>(undefined);
  const command = `semel doubt${tool === undefined ? '' : ` --tool ${shellWord(tool)}`} --namespace ${shellWord(namespace)}`;
  const groups = useMemo(() => groupsOf(loaded.data?.items ?? [], error), [loaded.data, error]);
  const count = groups.reduce((sum, { members }) => sum + members.length, 0);
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
      <Load loaded={loaded} what="what is in doubt">
        {({ next }) =>
          groups.length === 0 ? (
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
          ) : (
            <>
              {next !== undefined && (
                <p class="notice" role="status">
                  The first {count.toLocaleString('en')} are shown. Decide these, or choose one tool.
                </p>
              )}
              {groups.map((group) => (
                <GroupCard
                  key={`${group.contract}\n${group.error}`}
                  group={group}
                  namespace={namespace}
                  mayDecide={mayDecide}
                  onDecide={setDeciding}
                />
              ))}
            </>
          )
        }
      </Load>
      {deciding !== undefined && (
        <ResolveDialog records={deciding} namespace={namespace} onClose={() => setDeciding(undefined)} />
      )}
    </>
  );
}

function GroupCard(props: {
  readonly group: Group;
  readonly namespace: string;
  readonly mayDecide: boolean;
  readonly onDecide: (records: readonly RecordInfo[]) => void;
}) {
  const { group, namespace, mayDecide, onDecide } = props;
  const { contract, error, members } = group;
  const [isOpen, setOpen] = useState(false);
  const open = members.filter(({ inDoubt }) => inDoubt);
  const shown = isOpen ? members : members.slice(0, shownAtFirst);
  return (
    <section class="group">
      <header>
        <h2>
          <a href={linkTo('/doubts', namespace, { tool: contract })}>
            <Text text={contract} max={64} />
          </a>
          <span class="count">{members.length.toLocaleString('en')}</span>
        </h2>
        <p class="error">
          <Text text={error} max={400} />
        </p>
        {mayDecide && open.length > 1 && (
          <button type="button" onClick={() => onDecide(open)}>
            Decide all {open.length.toLocaleString('en')}…
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
      {members.length > shownAtFirst && (
        <button type="button" class="quiet more" onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Show fewer' : `Show all ${members.length.toLocaleString('en')}`}
        </button>
      )}
    </section>
  );
}
