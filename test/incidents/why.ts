// The page docs/start/why.md: what goes wrong without a ledger of intents, by the incidents that show it.

import { incident as crashAfterSend } from './crash-after-send.ts';
import type { Incident } from './incident.ts';
import { incident as keyOrder } from './key-order.ts';
import { incident as mailAfterTimeout } from './mail-after-timeout.ts';
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
    usual: 'Retry on every error.',
  },
  {
    incident: crashAfterSend,
    heading: 'A crash after the effect',
    usual: 'Write "done" after the effect.',
  },
  {
    incident: zombie,
    heading: 'A frozen worker',
    usual: 'Take a lock with a TTL.',
  },
  {
    incident: parallelRetries,
    heading: 'Duplicates at the same moment',
    usual: 'Check first, then act.',
  },
  {
    incident: rewordedBody,
    heading: 'A re-worded body',
    usual: 'Cache calls by their args.',
  },
  {
    incident: keyOrder,
    heading: 'Key order and nested fields',
    usual: 'Use a hash of the JSON as the key.',
  },
];

export function whyPage(): string {
  return `# Why

For anyone who asks: isn't a retry, a lock or a cache enough? This is how the usual ways fail. \`npm run incidents\` plays them, and writes
this page.

${reasons.map(section).join('\n')}
## What to do instead

1. **Name the intent, not the attempt**: who asks, which tool, and the args that make it the same call.
2. **Claim that name** before the effect, and **record the outcome** after it.
3. **If a claim has no outcome, say so.** Only the target, or a person who looks, can know what happened.

That is what semel does. [Incidents](../guides/incidents.md) shows how each of these ends with it.
`;
}

function section({ incident, heading, usual }: Reason): string {
  const [bare] = incident.ways;
  return `## ${heading}

**The usual way:** ${usual}

${incident.happened} ${bare?.comes}
`;
}
