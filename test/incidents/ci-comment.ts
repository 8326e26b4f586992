// A CI job comments on a pull request, a later step is flaky, and each retry comments again.

import type { Incident } from './incident.ts';
import { shellOn } from './shell.ts';

const bare = `
post "size report on #7" "12 kB"
[ "$TRY" = 3 ]   # a flaky step
`;
const guarded = `
semel once comment --id pr=7 --id check=size -- post "size report on #7" "12 kB"
[ "$TRY" = 3 ]   # a flaky step
`;

export const incident: Incident = {
  title: 'A CI comment on every retry',
  file: './ci-comment.ts',
  script: `semel once comment --id pr=$PR --id check=size -- gh pr comment "$PR" --body-file report.md`,
  happened: 'A CI job comments on a pull request, and is retried for a later step.',
  answer: 'The retries print what the first comment returned.',
  wanted: 1,
  ways: [
    { name: 'bare', effects: 3, inDoubt: 0 },
    {
      name: 'semel',
      effects: 1,
      inDoubt: 0,
    },
  ],
  async play(stage) {
    const { run } = shellOn(stage, stage.way === 'bare' ? bare : guarded);
    for (let start = 1; start <= 3; start += 1) if ((await run(`TRY=${start} sh job.sh`)) === 0) break;
  },
};
