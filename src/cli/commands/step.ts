// `semel step`: a durable step of a run. Its output is kept, so that the next attempt goes on with the same.

import { existsSync } from 'node:fs';
import {
  contractName,
  type EffectReport,
  mostBytes,
  ownerOf,
  resultBytes,
  runEffect,
  shownOwner,
} from '../../jobs/index.ts';
import { shownError, shownMessage } from '../caller.ts';
import { command } from '../command.ts';
import { exitCodeOf } from '../exit-code.ts';
import { text, toggle } from '../flags.ts';
import { couldNotStart, guardedLine, guardIn, leave, newMark } from '../guarded.ts';
import { mustBeInside } from '../inside.ts';
import { ledgerFor } from '../ledger.ts';
import { keepFile, outputOf, writeFile } from '../render/file-output.ts';
import { jsonText } from '../render/json-text.ts';
import { writeResult } from '../render/output.ts';
import { complain, printAside } from '../render/print.ts';

export default command({
  name: 'step',
  takes: '<name> [-o file] -- <command> [args…]',
  about: `Inside \`semel run\`. The first success is kept: when the run is attempted again, the step prints the same and runs
nothing. A step that failed or died is run again: put effects under \`semel once\`. With -o the output goes to the file,
whole or not at all, and a later attempt keeps or restores it.`,
  flags: {
    output: text('<file>', 'write the output there: only on success, by renaming', 'o'),
    quiet: toggle('say nothing about what was done already', 'q'),
  },
  examples: ['semel step plan -- llm "plan the post"', 'semel step draft -o draft.md -- llm "write it"'],
  async run(input) {
    const { values } = input;
    const { name, words } = guardedLine('step', 'step', input, '-- ./plan.sh');
    mustBeInside('step');
    const mark = newMark();
    await using semel = ledgerFor(values, {
      make: true,
      owner: ownerOf(mark),
      limits: { resultBytes },
    });
    const report = await runEffect({
      ...(await guardIn(semel, values, mark)),
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
      windowMs: undefined,
      timeoutMs: Number.POSITIVE_INFINITY,
      graceMs: 10_000,
      passOn: values.output === undefined,
    });
    const code = await tell(name, words, report, values);
    return report.kind === 'left behind' ? leave(semel, code) : code;
  },
});

interface Wishes {
  readonly output: string | undefined;
  readonly quiet: boolean | undefined;
  readonly json: boolean | undefined;
}

async function tell(
  name: string,
  typed: readonly string[],
  report: EffectReport,
  { output, quiet, json }: Wishes,
): Promise<number> {
  const answer = (status: string, exit: number, more: object = {}) => {
    if (json) printAside(jsonText({ step: name, status, exit, ...more }));
    return exit;
  };
  const notKept = (file: string, size?: number) => {
    const printed = size === undefined ? 'more' : `${size} bytes, more`;
    complain(
      `${name} printed ${printed} than the ${mostBytes} bytes that are kept: ${file} was not written, and the step is run again. Let the command write the file itself`,
    );
    return answer('not kept', 70);
  };
  switch (report.kind) {
    case 'ran': {
      const { ending } = report;
      if (ending.exit === 0 && output !== undefined) {
        if (ending.stdout === undefined) return notKept(output, ending.stdoutBytes);
        await writeFile(output, ending.stdout);
      } else if (ending.exit === 0 && ending.stdout === undefined && !json)
        complain(
          `${name} printed more than the ${mostBytes} bytes that are kept: the next attempt runs it again`,
        );
      if (ending.neverStarted && !json) complain(couldNotStart(typed, ending));
      return answer(ending.exit === 0 ? 'succeeded' : 'failed', ending.exit);
    }
    case 'done': {
      const bytes = outputOf(report.value);
      if (output !== undefined && bytes === undefined && !existsSync(output)) return notKept(output);
      const at = report.record.settledAt ?? new Date(0);
      const how = output === undefined ? 'its output is printed again' : await keepFile(output, bytes);
      if (output === undefined) await writeResult(report.value);
      if (!quiet && !json)
        complain(`${name} was done at ${at.toISOString()} by ${shownOwner(report.record.owner)}; ${how}`);
      return answer('replayed', 0, { doneAt: at });
    }
    case 'left behind':
      complain(`${name} failed with exit ${report.ending.exit}, and what it started still runs`);
      return answer('left behind', 76);
    case 'busy':
      if (!json) complain(`${name} is being done by ${shownOwner(report.holder.record.owner)}`);
      return answer('busy', 75);
    case 'refused':
      if (!json) complain(shownMessage(report.error));
      return answer(report.error.code, exitCodeOf(report.error), { error: shownError(report.error) });
  }
}
