// A file is written, its push fails, and the job runs again.

import { conducts } from '../support/effect-server/index.ts';
import type { Incident } from './incident.ts';
import { shellOn } from './shell.ts';

const push = 'while read -r line; do post "an entry of today" "$line" || exit 22; done < changelog.md';

const bare = `
echo "entry $(date +%N)" >> changelog.md   # the model writes another one each time
${push}
`;
const guarded = `
semel step entry -o changelog.md -- sh -c 'echo "entry $(date +%N)"'
semel once push --not-landed-exit 22 -- sh -c '${push}'
`;

export const incident: Incident = {
  title: 'A push that fails after the file was written',
  file: './push-fails.ts',
  script: `# in the crontab
semel run changelog --per day -- sh job.sh

# job.sh
semel step entry -o changelog.md -- llm "write the entry of today"
semel once push --not-landed-exit 22 -- ./push.sh changelog.md`,
  happened:
    'The remote rejects the push of an entry that an agent wrote. The job runs again, adds a re-worded entry, and pushes both.',
  answer:
    'The second run pushes the first one’s file. `--not-landed-exit 22` says that a rejected push did nothing.',
  wanted: 1,
  ways: [
    { name: 'bare', effects: 2, inDoubt: 0 },
    {
      name: 'semel',
      effects: 1,
      inDoubt: 0,
    },
  ],
  targets: { first: [conducts.refuses(503)] },
  async play(stage) {
    const { run } = shellOn(stage, stage.way === 'bare' ? bare : guarded);
    const cron = stage.way === 'bare' ? 'sh job.sh' : 'semel run changelog --at 2026-06-19 -- sh job.sh';
    for (let start = 0; start < 2; start += 1) if ((await run(cron)) === 0) break;
  },
};
