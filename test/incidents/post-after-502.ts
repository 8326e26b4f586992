// A blog post is published, the answer is a 502, and cron starts the agent again: with other prose and another slug.

import { conducts } from '../support/effect-server/index.ts';
import type { Incident } from './incident.ts';
import { shellOn } from './shell.ts';

const bare = `
slug="post-$(date +%N)"   # the model writes another one each time
post "the post of today" "$slug"
`;
const guarded = `
slug="post-$(date +%N)"   # the model writes another one each time
semel once publish -- post "the post of today" "$slug"
`;
const verified = `
# The model writes another slug each time.
slug="post-$(date +%N)"
semel once publish --verify 'look "the post of today"' -- post "the post of today" "$slug"
`;

export const incident: Incident = {
  title: 'A 502 after the post was published',
  file: './post-after-502.ts',
  script: `# in the crontab\nsemel run blog --per day -- sh agent.sh\n\n# agent.sh${verified}`,
  happened:
    'An agent publishes a post, and the gateway answers 502 after it is live. Cron starts the agent again; the model writes another text and slug.',
  wanted: 1,
  ways: [
    { name: 'bare', effects: 2, inDoubt: 0 },
    {
      name: 'semel',
      effects: 1,
      inDoubt: 1,
    },
    {
      name: 'semel, verify',
      effects: 1,
      inDoubt: 0,
    },
  ],
  targets: { first: [conducts.commitsThenRefuses(502)] },
  async play(stage) {
    const scripts: Record<string, string> = { bare, semel: guarded, 'semel, verify': verified };
    const { run } = shellOn(stage, scripts[stage.way] ?? '');
    const cron = stage.way === 'bare' ? 'sh job.sh' : 'semel run blog --at 2026-06-19 -- sh job.sh';
    for (let start = 0; start < 2; start += 1) if ((await run(cron)) === 0) break;
  },
};
