// A cron line of every five minutes whose run takes seven.

import type { Incident } from './incident.ts';
import { shellOn } from './shell.ts';

/** The run is slow at the worst moment: it has seen that the mail is not out yet. */
const script = `
look "the reminder" && exit 0
touch "working.$$"; while [ ! -e go ]; do sleep 0.05; done
post "the reminder"
`;

export const incident: Incident = {
  title: 'A cron job that overlaps itself',
  file: './overlapping-cron.ts',
  script: `*/5 * * * *  semel run reminders --cron '*/5 * * * *' -- ./reminders.sh`,
  happened: 'A job that cron starts every five minutes takes seven. Two runs see the same reminder.',
  answer: 'The second start says that the job is running.',
  wanted: 1,
  ways: [
    { name: 'bare', effects: 2, inDoubt: 0 },
    {
      name: 'semel',
      effects: 1,
      inDoubt: 0,
    },
  ],
  async play(stage) {
    const { run, marks, mark, until } = shellOn(stage, script);
    const cron = (at: string) =>
      stage.way === 'bare' ? 'sh job.sh' : `semel run reminders --cron '*/5 * * * *' --at ${at} -- sh job.sh`;
    const first = run(cron('2026-06-19T07:00:00Z'));
    await until(() => marks('working.').length === 1);
    const second = run(cron('2026-06-19T07:05:00Z'));
    if (stage.way === 'bare') await until(() => marks('working.').length === 2);
    else await second;
    mark('go');
    await Promise.all([first, second]);
  },
};
