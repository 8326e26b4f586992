// `semel watch`: sends an alert for every new doubt, and one when it is decided.

import { flagReader, maxTimerMs } from '../../args/flag-values.ts';
import { command } from '../../command.ts';
import { text, toggle } from '../../flags.ts';
import { storeFor } from '../../ledger.ts';
import { complain, print, printJsonLine } from '../../render/print.ts';
import { usageError } from '../../usage.ts';
import { alertFlags, alertTargets, describeAlert, watchFor } from './alerts.ts';

export default command({
  name: 'watch',
  takes: '--webhook <url>|--slack <url>|--exec <command> [options]',
  about: `Sends an alert for every new doubt in the ledger, and one when it is decided; also for doubts that a killed process left. Each
is sent once to each target, however many watchers run. What cannot be delivered is tried again for three days. A target
that answers 410 gets no more.`,
  flags: {
    ...alertFlags,
    every: text('<duration>', 'the pause between two looks (default: 10s)'),
    once: toggle(
      'look once, send what is due, and end: for cron. Exits with 1 if an alert could not be sent',
    ),
    enable: toggle('send again to a target that answered 410'),
  },
  examples: [
    'semel watch --slack @slack-url.txt',
    'semel watch --webhook https://ops.example.com/semel --url https://ledger.example.com',
    'semel watch --once --exec "mail -s doubt oncall@example.com"',
  ],
  async run({ values, positionals, rest }) {
    if (positionals.length > 0 || rest !== undefined) throw usageError('watch', 'it takes options only');
    const read = flagReader('watch', values);
    const everyMs = read.duration('every', 10_000, { from: 1_000, to: maxTimerMs });
    const olderMs = read.duration('older', 0);
    const targets = alertTargets('watch', values);
    if (targets.length === 0)
      throw usageError(
        'watch',
        'there is no target for alerts',
        'Add --webhook <url>, --slack <url> or --exec <command>.',
      );
    const store = await storeFor(values);
    const watch = await watchFor(values, {
      store,
      targets,
      olderMs,
      url: values.url,
      onAlert(alert) {
        if (values.json) printJsonLine(alert);
        else if (alert.error === undefined) print(describeAlert(alert));
        else complain(describeAlert(alert));
      },
    });
    try {
      if (values.enable) await watch.enable();
      if (values.once) return (await watch.pass()).unsent === 0 ? 0 : 1;
      await watch.run(everyMs, untilStopped());
      return 0;
    } finally {
      await watch.close();
      await store.close();
    }
  },
});

function untilStopped(): AbortSignal {
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => ending.abort());
  return ending.signal;
}
