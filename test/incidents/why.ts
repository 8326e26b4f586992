// The page docs/start/why.md: why the usual ways are not enough, by the incidents that show it.

import { incident as crashAfterSend } from './crash-after-send.ts';
import type { Incident } from './incident.ts';
import { incident as keyOrder } from './key-order.ts';
import { incident as mailAfterTimeout } from './mail-after-timeout.ts';
import { anchorOf } from './page.ts';
import { incident as parallelRetries } from './parallel-retries.ts';
import { incident as rewordedBody } from './reworded-body.ts';
import { incident as zombie } from './zombie.ts';

interface Reason {
  readonly incident: Incident;
  readonly usual: string;
  readonly fails: string;
}

const reasons: readonly Reason[] = [
  {
    incident: mailAfterTimeout,
    usual: 'Retry on every error.',
    fails: 'The server sent the mail and answers late. An error after the send looks like one before it.',
  },
  {
    incident: crashAfterSend,
    usual: 'Write "done" after the effect.',
    fails: 'The worker is killed between the two. There is no record, so the next one charges again.',
  },
  {
    incident: zombie,
    usual: 'Take a lock with a TTL.',
    fails: 'The worker freezes, its lock expires, and it wakes up and sends what another has sent.',
  },
  {
    incident: parallelRetries,
    usual: 'Check first, then act.',
    fails: 'Two workers check at the same moment, and both find nothing.',
  },
  {
    incident: rewordedBody,
    usual: 'Cache calls by their args.',
    fails: 'The model words the mail differently: other args, another mail.',
  },
  {
    incident: keyOrder,
    usual: 'Use a hash of the JSON as the key.',
    fails: 'A different field order, or a trace id, gives a different hash.',
  },
];

export function whyPage(): string {
  return `# Why

For anyone who asks: isn't a retry, a lock or a cache enough? Each fails in its own way; \`npm run incidents\` plays them with real processes.

| the usual way | how it fails | played |
|---|---|---|
${reasons.map(row).join('\n')}

What to do instead:

1. **Name the intent, not the attempt**: who asks, which tool, and the args that make it the same call.
2. **Claim that name** before the effect, and **record the outcome** after it.
3. **If a claim has no outcome, say so.** Only the target, or a person who looks, can know what happened.

That is what semel does: try the [tour](README.md).
`;
}

function row({ incident: { title }, usual, fails }: Reason): string {
  return `| ${usual} | ${fails} | [${title}](../guides/incidents.md#${anchorOf(title)}) |`;
}
