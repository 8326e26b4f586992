// `semel resolve`: a person's verdict about a record in doubt, under the fence that they looked at.

import type { Resolution } from '../semel/index.ts';
import { command } from './command.ts';
import { ledgerFor } from './ledger.ts';
import { complain, print, printJson } from './print.ts';
import { usageError } from './usage.ts';

export default command({
  name: 'resolve',
  takes: '<id@fence> <verdict> [-m note] [options]',
  about: `Verdicts:
  landed        it landed; later calls get --result, or undefined where none is given
  not-landed    it definitely did not land: the next call executes
  run-again     nobody knows, and a second effect is acceptable: the next call executes
  abandon       give it up; it may have landed, so it is not done again (-m says why)
  died          the process that runs it is gone: do not wait for its lease`,
  flags: {
    result: { type: 'string', value: '<json>', help: 'what the call would have returned' },
    ref: { type: 'string', value: '<id>', help: "the provider's own id for what landed" },
    note: { type: 'string', short: 'm', value: '<text>', help: 'kept in the history' },
    by: { type: 'string', value: '<name>', help: 'who decides (default: the login name)' },
    force: { type: 'boolean', help: 'also while it is being executed, or before "not landed" can be known' },
  },
  examples: [`semel resolve 7f3a0c2b9d@2 landed --result '{"id":"re_1"}' -m "seen in Stripe"`],
  async run({ values, positionals }) {
    const [ref, verdict] = positionals;
    if (ref === undefined || verdict === undefined || positionals.length > 2)
      throw usageError(
        'resolve',
        'it takes a record and a verdict',
        `Write: semel resolve <id@fence> ${verdicts}`,
      );
    const resolution = resolutionOf(verdict, values);
    await using semel = ledgerFor(values);
    const record = await semel.doubts.resolve(ref, resolution, {
      ...(values.by === undefined ? {} : { by: values.by }),
      ...(values.note === undefined ? {} : { note: values.note }),
      ...(values.force === undefined ? {} : { force: values.force }),
    });
    if (verdict === 'landed' && values.result === undefined)
      complain('later calls get undefined. If the effect returns something, give it by --result.');
    if (values.json) printJson(record);
    else print(`${record.ref}  ${record.contract}  ${record.status}`);
    return 0;
  },
});

const verdicts = 'landed|not-landed|run-again|abandon|died';

interface Given {
  readonly result?: string | undefined;
  readonly ref?: string | undefined;
  readonly note?: string | undefined;
}

function resolutionOf(verdict: string, given: Given): Resolution {
  switch (verdict) {
    case 'landed': {
      const remoteRef = given.ref === undefined ? {} : { remoteRef: given.ref };
      return { landed: given.result === undefined ? undefined : resultOf(given.result), ...remoteRef };
    }
    case 'not-landed':
      return 'notLanded';
    case 'run-again':
      return 'runAgain';
    case 'died':
      return 'died';
    case 'abandon':
      if (given.note === undefined)
        throw usageError('resolve', 'to abandon needs a reason', 'Write: -m "why"');
      return { abandon: given.note };
    default:
      throw usageError('resolve', `${JSON.stringify(verdict)} is no verdict`, `Write one of ${verdicts}.`);
  }
}

function resultOf(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw usageError('resolve', '--result is no JSON', `Quote it for the shell: --result '{"id":"re_1"}'`);
  }
}
