// `semel sweep <module>`: what is in doubt is settled by the module's own tools, unattended.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { eventually, type Place, place } from './place.ts';

const library = join(import.meta.dirname, '../../src/index.ts');

/** Refunds whose target can be asked, and mails whose target cannot. */
const tools = `
  import { appendFileSync } from 'node:fs';
  import { createSemel, landed, notLanded, unsure } from '${library}';
  export const semel = createSemel({ namespace: 'shop', onWarning: () => undefined });
  const fails = (args) => { if (process.env.FAILS) throw new Error('socket hang up'); appendFileSync('ran', args.order + '\\n'); return 'done'; };
  const terms = { effect: 'irreversible', per: 'ever', identity: ['order'], verifyAfter: '1ms', timeout: '1s', run: fails };
  const answers = { there: () => landed('re_1'), gone: () => notLanded(), odd: () => unsure('the token has expired') };
  export const refund = semel.tool({ ...terms, name: 'refund', verify: ({ order }) => process.env.FAILS ? unsure('down') : answers[order]() });
  export const mail = semel.tool({ ...terms, name: 'mail' });
`;

async function doubtful(): Promise<Place> {
  const at = place();
  at.file('tools.mjs', tools);
  at.file(
    'fail.mjs',
    `import { refund, mail, semel } from './tools.mjs';
     for (const order of ['there', 'gone', 'odd']) await refund.try({ order });
     await mail.try({ order: 'there' });
     await semel.close();`,
  );
  const { status, stderr } = spawnSync(process.execPath, [at.path('fail.mjs')], {
    cwd: at.folder,
    env: { ...at.env, FAILS: '1', NODE_NO_WARNINGS: '1' },
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([0, '']);
  return at;
}

describe('semel sweep', () => {
  test('settles what the tools can find out, executes what did not land, and says what stays and why', async () => {
    const at = await doubtful();
    const said = await at.semel('sweep', './tools.mjs', '--exit-code');
    expect(said.stdout).toMatch(/refund \S+: landed, found out/);
    expect(said.stdout).toMatch(/refund \S+: landed, executed now/);
    expect(said.stdout).toMatch(/refund \S+: still in doubt: .*the token has expired/);
    expect(said.stdout).toMatch(/mail \S+: still in doubt/);
    expect(said.stdout).toContain('2 landed, 0 did not. 2 still in doubt: semel doubt lists them.');
    expect(said.code).toBe(1);
    expect(at.lines('ran')).toEqual(['gone']);
  });

  test('--no-execute runs nothing; --tool and --json are as in other commands', async () => {
    const at = await doubtful();
    const said = await at.semel('sweep', './tools.mjs', '--tool', 'refund', '--no-execute', '--json');
    const lines = said.stdout
      .trim()
      .split(/\n(?=\{)/)
      .map((line) => JSON.parse(line));
    expect(lines.map(({ as, executed }) => [as, executed]).sort()).toEqual([
      ['landed', false],
      ['notLanded', false],
      ['open', false],
    ]);
    expect(lines).toContainEqual(expect.objectContaining({ namespace: 'shop', contract: 'refund' }));
    expect(said.code).toBe(0);
    expect(at.lines('ran')).toEqual([]);
  });

  test('--every continues until interrupted', async () => {
    const at = await doubtful();
    const started = at.start('sweep', './tools.mjs', '--every', '1s', '--tool', 'refund', '--exit-code');
    await eventually(() => started.stdoutBytes().toString().split('still in doubt: semel').length > 2);
    started.child.kill('SIGTERM');
    expect((await started.ended).code).toBe(1);
  });

  test('an agent is refused, since it could write the module', async () => {
    const at = await doubtful();
    const said = await at.with({ env: { CLAUDECODE: '1' } }).semel('sweep', './tools.mjs');
    expect([said.code, said.stderr]).toEqual([70, expect.stringContaining('is up to the operator')]);
    expect(at.lines('ran')).toEqual([]);
  });

  test('a module without an instance, another namespace and a --store are refused with what to do', async () => {
    const at = place();
    at.file('empty.mjs', 'export const tools = {};');
    at.file('tools.mjs', tools);
    at.file('waits.mjs', 'await 0;\nexport const tools = {};');
    const refusals: readonly (readonly [readonly string[], string])[] = [
      [['./empty.mjs'], 'does not export what `createSemel` returned'],
      [['./nothing.mjs'], 'could not be loaded'],
      [['./waits.mjs'], 'has an `await` at the top. Export the Semel instance from a module without one'],
      [['./tools.mjs', '--namespace', 'other'], 'uses the namespace "shop", not "other"'],
      [['./tools.mjs', '--store', 'memory:'], 'takes no --store'],
      [[], 'name the module that exports your Semel instance'],
    ];
    for (const [args, words] of refusals) {
      const said = await at.semel('sweep', args);
      expect([said.code, said.stderr]).toEqual([64, expect.stringContaining(words)]);
    }
  });
});
