// `semel step`: a durable step of a run. Its output is kept, so that the next attempt continues with the same.

import { existsSync } from 'node:fs';
import {
  contractName,
  maxOutputBytes,
  type Report,
  resultBytes,
  runEffect,
  shownOwner,
} from '../../jobs/index.ts';
import { command } from '../command.ts';
import { text, toggle } from '../flags.ts';
import { createReporter, describeNoStart, guardedLine, newPipeName, runGuarded } from '../guarded.ts';
import { keepFile, outputOf, writeFile } from '../render/file-output.ts';
import { writeResult } from '../render/output.ts';
import { complain } from '../render/print.ts';
import { requireRun } from '../run-context.ts';

export default command({
  name: 'step',
  takes: '<name> [-o file] -- <command> [args…]',
  about: `Inside \`semel run\`. The first success is kept: when the run is attempted again, the step prints the same output
and runs nothing. A step that failed or crashed runs again: put effects under \`semel once\`. With -o the output goes to the
file, whole or not at all, and a later attempt keeps or restores it.`,
  flags: {
    output: text('<file>', 'write the output to this file, atomically and only on success', 'o'),
    quiet: toggle('do not report what was done before', 'q'),
  },
  examples: ['semel step plan -- llm "plan the post"', 'semel step draft -o draft.md -- llm "write it"'],
  async run(input) {
    const { values } = input;
    const { name, words } = guardedLine('step', 'step', input, '-- ./plan.sh');
    const { windowMs } = requireRun('step');
    return runGuarded(
      values,
      newPipeName(),
      { resultBytes },
      (guard) =>
        runEffect({
          ...guard,
          contract: contractName('step', name),
          args: { step: name },
          per: 'run',
          callOptions: {},
          command: words,
          env: {},
          ifBusy: 'wait',
          waitMs: Number.POSITIVE_INFINITY,
          ifUnknown: 'free',
          notLandedExits: [],
          verify: undefined,
          verifyAfterMs: 0,
          leaseMs: 900_000,
          windowMs,
          timeoutMs: Number.POSITIVE_INFINITY,
          graceMs: 10_000,
          passOn: values.output === undefined,
        }),
      (report) => tell(name, words, report, values),
    );
  },
});

interface Options {
  readonly output: string | undefined;
  readonly quiet: boolean | undefined;
  readonly json: boolean | undefined;
}

async function tell(
  name: string,
  words: readonly string[],
  report: Report,
  { output, quiet, json }: Options,
): Promise<number> {
  const { say, finish, refuse } = createReporter(json, { step: name });
  const notKept = (file: string, size?: number) => {
    const printed = size === undefined ? 'more' : `${size} bytes, more`;
    complain(
      `${name} printed ${printed} than the ${maxOutputBytes} bytes that are kept: ${file} was not written, and the step runs again. Let the command write the file itself`,
    );
    return finish('not kept', 70);
  };
  switch (report.kind) {
    case 'ran': {
      const { ending } = report;
      if (report.leftBehind) {
        complain(`${name} failed with exit ${ending.exit}, but processes it started are still running`);
        return finish('left behind', 76);
      }
      if (ending.exit === 0 && output !== undefined) {
        if (ending.stdout === undefined) return notKept(output, ending.stdoutBytes);
        await writeFile(output, ending.stdout);
      } else if (ending.exit === 0 && ending.stdout === undefined)
        say(
          `${name} printed more than the ${maxOutputBytes} bytes that are kept: the next attempt runs it again`,
        );
      if (ending.neverStarted) say(describeNoStart(words, ending));
      return finish(ending.exit === 0 ? 'succeeded' : 'failed', ending.exit);
    }
    case 'done': {
      const { value, record } = report;
      const bytes = outputOf(value);
      if (output !== undefined && bytes === undefined && !existsSync(output)) return notKept(output);
      const at = record.settledAt ?? new Date(0);
      const how = output === undefined ? 'its output is printed again' : await keepFile(output, bytes);
      if (output === undefined) await writeResult(value);
      if (!quiet) say(`${name} was done at ${at.toISOString()} by ${shownOwner(record.owner)}; ${how}`);
      return finish('replayed', 0, { doneAt: at });
    }
    case 'busy':
      say(`${name} is being done by ${shownOwner(report.holder.record.owner)}`);
      return finish('busy', 75);
    case 'refused':
      return refuse(report.error);
  }
}
