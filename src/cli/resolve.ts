// `semel resolve`: a person's verdict about a record in doubt, under the fence that they looked at.

import { parseArgs } from 'node:util';
import { SemelError } from '../core/errors.ts';
import type { Resolution } from '../semel/index.ts';
import { ledgerOptions, semelOf } from './ledger-options.ts';
import { printableJson } from './printable.ts';

const help = `semel resolve: decide about a record in doubt

Usage: semel resolve <id@fence> <verdict> [-m note] [options]

  landed        it landed; later calls get --result, or undefined where none is given
  not-landed    it definitely did not land: the next call executes
  run-again     nobody knows, and a second effect is acceptable: the next call executes
  abandon       give it up; it may have landed, so it is not done again (-m says why)

  --result <json>     what the call would have returned
  --ref <id>          the provider's own id for what landed
  -m, --note <text>   kept in the history
  --by <name>         who decides (default: the login name)
  --force             also while it is being executed, or before "not landed" can be known

Example: semel resolve 7f3a0c2b9d@2 landed --result '{"id":"re_1"}' -m "seen in Stripe"
`;

export async function run(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      ...ledgerOptions,
      result: { type: 'string' },
      ref: { type: 'string' },
      note: { type: 'string', short: 'm' },
      by: { type: 'string' },
      force: { type: 'boolean' },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return 0;
  }
  const [ref, verdict] = positionals;
  if (ref === undefined || verdict === undefined || positionals.length > 2) {
    throw usage(
      'it takes a record and a verdict',
      'semel resolve <id@fence> landed|not-landed|run-again|abandon',
    );
  }
  const resolution = resolutionOf(verdict, values);
  await using semel = semelOf(values);
  const record = await semel.doubts.resolve(ref, resolution, {
    ...(values.by === undefined ? {} : { by: values.by }),
    ...(values.note === undefined ? {} : { note: values.note }),
    ...(values.force === undefined ? {} : { force: values.force }),
  });
  if (verdict === 'landed' && values.result === undefined) {
    process.stderr.write(
      'semel: later calls get undefined. If the effect returns something, give it by --result.\n',
    );
  }
  process.stdout.write(
    values.json ? printableJson(record) : `${record.ref}  ${record.contract}  ${record.status}\n`,
  );
  return 0;
}

function resolutionOf(
  verdict: string,
  given: { result?: string | undefined; ref?: string | undefined; note?: string | undefined },
): Resolution {
  switch (verdict) {
    case 'landed': {
      const remoteRef = given.ref === undefined ? {} : { remoteRef: given.ref };
      return { landed: given.result === undefined ? undefined : resultOf(given.result), ...remoteRef };
    }
    case 'not-landed':
      return 'notLanded';
    case 'run-again':
      return 'runAgain';
    case 'abandon':
      if (given.note === undefined) throw usage('to abandon needs a reason', '-m "why"');
      return { abandon: given.note };
    default:
      throw usage(`${JSON.stringify(verdict)} is no verdict`, 'landed, not-landed, run-again or abandon');
  }
}

function resultOf(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw usage('--result is no JSON', `quote it for the shell: --result '{"id":"re_1"}'`);
  }
}

function usage(happened: string, write: string): SemelError {
  return new SemelError('INVALID_ARGS', `${happened}.`, { next: `Write: ${write}` });
}
