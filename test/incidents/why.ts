// The page docs/why.md: what goes wrong without a ledger of intents, by the incidents that show it.

import { incident as crashAfterSend } from './crash-after-send.ts';
import type { Incident } from './incident.ts';
import { incident as keyOrder } from './key-order.ts';
import { incident as mailAfterTimeout } from './mail-after-timeout.ts';
import { outcomeTable } from './page.ts';
import { incident as parallelRetries } from './parallel-retries.ts';
import { incident as rewordedBody } from './reworded-body.ts';
import { incident as zombie } from './zombie.ts';

interface Reason {
  readonly incident: Incident;
  readonly heading: string;
  readonly usual: string;
}

const reasons: readonly Reason[] = [
  {
    incident: mailAfterTimeout,
    heading: 'A lost reply',
    usual: 'Retry on every error. An error after the send looks like one before it.',
  },
  {
    incident: crashAfterSend,
    heading: 'A crash after the effect',
    usual: 'Write "done" after the effect. Whoever dies in between has done it, and nobody knows.',
  },
  {
    incident: zombie,
    heading: 'A zombie',
    usual: 'A lock with a time limit. Whoever stood still for longer goes on without it.',
  },
  {
    incident: parallelRetries,
    heading: 'Duplicates at the same moment',
    usual: 'Look first, then act. Two who look at once both see nothing.',
  },
  {
    incident: rewordedBody,
    heading: 'A body that is worded anew',
    usual: 'Remember calls by their args. A model never words a mail the same way twice.',
  },
  {
    incident: keyOrder,
    heading: 'Key order and nested fields',
    usual:
      'A digest of the JSON. The same args in another order, or with a trace id somewhere inside, are another digest.',
  },
];

export function whyPage(): string {
  const rows = reasons.flatMap(({ incident: { title, wanted, ways } }) =>
    ways.map(({ name, effects, inDoubt }) => ({ incident: title, way: name, wanted, effects, inDoubt })),
  );
  return `# Why

Retries are good: without them agents would give up at every hiccup. What is wrong is the second effect. The usual ways to
prevent it fail, each in its own manner; \`npm run incidents\` plays every one of them with real processes and a target that counts,
bare and with semel, and writes this page. The numbers are what landed.

${outcomeTable(rows)}

${reasons.map(section).join('\n')}
## What to do instead

Name the intent, not the attempt: who asks, which tool, and the args that make it one thing that somebody wants. Claim that
name before the effect, durably and by one holder at a time. Settle it afterwards. Where the claim was made and nobody settled, say
so: nothing but the target, or a person who looks, can know what happened. That is all that semel does;
[semantics](semantics.md) has the rules, [agents](agents.md) has the line of code, and all incidents are [here](incidents.md).
`;
}

function section({ incident: { title, happened, ways }, heading, usual }: Reason): string {
  const [, ...others] = ways;
  const [bare] = ways;
  return `## ${heading}

**The usual way.** ${usual}

${happened} ${bare?.comes}

${others.map(({ name, comes }) => `- **${name}**: ${comes}`).join('\n')}

[The whole of it](incidents.md#${anchorOf(title)})
`;
}

function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N} -]/gu, '')
    .replaceAll(' ', '-');
}
