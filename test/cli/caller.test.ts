// An agent must not judge itself: what it may read, what it may not decide, and what an operator may let it.

import { chmodSync, chownSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { callerOf } from '../../src/cli/caller.ts';
import { type Place, place } from './place.ts';

const lost = ['--', 'sh', '-c', 'echo ran >> effects; exit 3'];

async function inDoubt(at: Place): Promise<string> {
  await at.semel('once', 'mail', '--id', 'a=1', lost);
  const [{ ref }] = (await at.json('doubt')) as [{ ref: string }];
  return ref;
}

const env = { CLAUDECODE: '1' };

describe('an agent', () => {
  test('reads that it may have landed, and neither a verdict to type nor where the ledger is', async () => {
    const at = place();
    const agent = at.with({ env });
    for (const flags of [[], ['--json']]) {
      const said = await agent.semel('once', 'mail', '--id', 'a=1', flags, lost);
      expect([said.code, said.stderr]).toEqual([76, expect.stringMatching(/may have (landed|been done)/)]);
      expect(said.stderr).not.toMatch(/resolve|not-landed|run-again|ledger\.db/);
    }
    for (const words of [['doubt'], ['show', (await inDoubt(at)).split('@')[0] as string]]) {
      const { stdout } = await agent.semel(...words);
      expect(stdout).toContain('A person has to check');
      expect(stdout).not.toMatch(/semel (resolve|forget|retry)|--verify/);
    }
    expect(at.lines('effects')).toEqual(['ran']);
  });

  test('does not see the path of a ledger that cannot be used', async () => {
    const at = place();
    chmodSync(at.folder, 0o777);
    const agent = at.with({ env });
    const store = ['--store', 'sqlite:/proc/no/ledger.db'];
    const said = await Promise.all([
      agent.semel('once', 'mail', '--id', 'a=1', '--', 'true'),
      agent.semel('once', 'mail', '--id', 'a=1', store, '--', 'true'),
      agent.semel('run', 'job', store, '--', 'true'),
    ]);
    expect(said.map(({ code }) => code)).toEqual([69, 69, 69]);
    for (const { stderr } of said) expect(stderr).not.toMatch(/ledger\.db|semel-cli-|\/proc/);
    expect((await at.semel('once', 'mail', '--id', 'a=2', '--', 'true')).stderr).toContain(at.folder);
  });

  test.runIf(process.geteuid?.() === 0)(
    'does not see the path of a ledger that others can write to',
    async () => {
      const at = place();
      chownSync(at.folder, 0, 4_242_424);
      chmodSync(at.folder, 0o770);
      const words = ['once', 'mail', '--id', 'a=1', '--', 'true'];
      const said = await at.with({ env }).semel(...words);
      expect([said.code, said.stderr]).toEqual([0, expect.not.stringMatching(/ledger\.db|semel-cli-/)]);
      expect((await at.semel(...words)).stderr).toContain(at.folder);
    },
  );

  test.each([
    ['', {}, []],
    [', whatever the environment says of the proxy', { SEMEL_AGENT: '0' }, []],
    [', while the tools are listed', {}, ['--inspect']],
  ])('behind `semel mcp` is an agent too%s', async (_, mark, flags) => {
    const at = place();
    const ref = await inDoubt(at);
    const server = ['--', 'sh', '-c', `${at.word} resolve ${ref} landed 2> said`];
    await at.with({ env: mark }).semel('mcp', ...flags, ...server);
    expect(at.lines('said').join()).toContain('is up to the operator');
  });

  test('may not decide, by whatever command', async () => {
    const at = place();
    const agent = at.with({ env });
    const ref = await inDoubt(at);
    await at.semel('once', 'done', '--id', 'a=1', '--', 'true');
    const [{ id }] = (await at.json('ls', '--tool', 'done')) as [{ id: string }];
    at.file('x.jsonl', '{"key":"k","status":"done"}\n');
    const decisions = [
      ['resolve', ref, 'run-again', '--by', 'ada'],
      ['resolve', '--tool', 'mail', 'landed', '--yes'],
      ['retry', id],
      ['forget', id, '--yes'],
      ['once', 'done', '--id', 'a=1', '--again', 'I want to', '--', 'touch', 'twice'],
      ['run', 'job', '--again', 'I want to', '--', 'touch', 'twice'],
      ['import', 'x.jsonl', '--tool', 'mail'],
      ['store', 'accept-loss', '--yes'],
      ['store', 'copy', '--from', at.store, '--to', at.storeAt('other.db')],
    ];
    const before = await at.json('ls');
    const said = await Promise.all(decisions.map((words) => agent.semel(...words)));
    for (const [nth, { code, stderr }] of said.entries()) {
      expect([code, stderr], decisions[nth]?.join(' ')).toEqual([
        70,
        expect.stringContaining('but Claude Code ran'),
      ]);
      expect(stderr).not.toContain('SEMEL_OPERATOR');
    }
    // What it types before its own command is not a grant.
    const typed = at.with({ env: { ...env, SEMEL_OPERATOR: 'ada' } });
    expect((await typed.semel('resolve', ref, 'run-again')).code).toBe(70);
    expect(await at.json('ls')).toEqual(before);
    expect(at.lines('twice')).toEqual([]);
  });
});

describe('inside `semel run`', () => {
  test('a command may not decide, and reads no verdict', async () => {
    const at = place();
    const ref = await inDoubt(at);
    const script = `${at.word} resolve ${ref} run-again; ${at.word} once mail --id a=1 -- true; env -u SEMEL_RUN SEMEL_OPERATOR=me ${at.word} resolve ${ref} landed; true`;
    const said = await at.semel('run', 'job', '--per', 'none', '--', 'sh', '-c', script);
    expect(said.stderr.match(/is up to the operator/g)).toHaveLength(2);
    expect(said.stderr).not.toMatch(/not-landed|ledger\.db/);
    expect((await at.json('doubt')) as []).toHaveLength(1);
  });

  test.each([
    ['takes its marks off', 'env -u SEMEL_RUN -u SEMEL_HELD SEMEL_OPERATOR=me'],
    ['drops its whole environment', 'env -i SEMEL_STORE="$SEMEL_STORE" HOME="$HOME" SEMEL_OPERATOR=me'],
    [
      'takes its marks off, grants itself, and puts others on',
      'env -u SEMEL_RUN -u SEMEL_HELD SEMEL_OPERATOR=me sh -c \'SEMEL_RUN=x "$@"; :\' x',
    ],
    ['goes on in a shell of its own', 'env -u SEMEL_RUN -u SEMEL_HELD SEMEL_OPERATOR=me sh -c \'"$@"; :\' x'],
  ])('a command that %s may not decide either', async (_, how) => {
    const at = place();
    const ref = await inDoubt(at);
    const script = `${how} ${at.word} resolve ${ref} run-again; true`;
    const said = await at.semel('run', 'job', '--per', 'none', '--', 'sh', '-c', script);
    expect(said.stderr).toContain('is up to the operator, but a command of `semel run` ran');
    expect((await at.json('doubt')) as []).toHaveLength(1);
  });

  const unmarked = ['env', '-u', 'SEMEL_RUN', '-u', 'SEMEL_HELD', 'SEMEL_OPERATOR=me'];

  test.each([
    ['nothing between it and its guard', unmarked],
    [
      'nothing between them, and its descriptors closed',
      [...unmarked, 'bash', '-c', 'exec 384<&- 385<&-; exec "$@" > said 2>&1', 'x'],
    ],
    ['a session of its own', ['setsid', '-w', ...unmarked]],
    [
      'nothing between them, its descriptors closed, and new marks below it',
      [...unmarked, 'bash', '-c', 'exec 384<&- 385<&-; SEMEL_RUN=x "$@" > said 2>&1; :', 'x'],
    ],
  ])('a command without marks, with %s, may not decide either', async (_, how) => {
    const at = place();
    const ref = await inDoubt(at);
    const resolve = [
      ...at.word.split(' ').map((word) => word.replaceAll("'", '')),
      'resolve',
      ref,
      'run-again',
    ];
    const said = await at.semel('run', 'job', '--per', 'none', '--', ...how, ...resolve);
    expect(said.stderr + at.lines('said').join()).toContain(
      'is up to the operator, but a command of `semel run` ran',
    );
    expect((await at.json('doubt')) as []).toHaveLength(1);
  });

  test.each(['AI_AGENT=1', 'SEMEL_RUN=x'])(
    'a command whose parent has gone may not grant itself the decision, whatever mark is put on after it: %s',
    async (mark) => {
      const at = place();
      const ref = await inDoubt(at);
      const orphan = `while kill -0 $0 2> /dev/null; do sleep 0.05; done; ${mark} "$@" > said 2>&1; mv said heard`;
      const script = `sh -c 'exec ${unmarked.join(' ')} sh -c "$0" $$ "$@" &' "$@"; while ! test -e heard; do sleep 0.05; done`;
      const resolve = at.word.split(' ').map((word) => word.replaceAll("'", ''));
      const words = ['sh', '-c', script, 'x', orphan, ...resolve, 'resolve', ref, 'run-again'];
      await at.semel('run', 'job', '--per', 'none', '--', ...words);
      expect(at.lines('heard').join()).toContain('is up to the operator');
      expect((await at.json('doubt')) as []).toHaveLength(1);
    },
  );

  test.each([
    ['', 'true'],
    [', and whose pipes were offered to another guard', 'once other --id a=1 -- true'],
  ])('what a command leaves behind may not decide after its guard has ended%s', async (_, between) => {
    const at = place();
    const ref = await inDoubt(at);
    const orphan = 'while ! test -e go; do sleep 0.05; done; "$@" > said 2>&1; mv said heard';
    const script = `${unmarked.join(' ')} sh -c "$0" x "$@" > /dev/null 2>&1 &`;
    const resolve = at.word.split(' ').map((word) => word.replaceAll("'", ''));
    const words = ['sh', '-c', script, orphan, ...resolve, 'resolve', ref, 'run-again'];
    await at.semel('once', 'leaves', '--id', 'a=1', '--', ...words);
    if (between !== 'true') await at.semel(...between.split(' '));
    at.file('go', '');
    await expect.poll(() => at.lines('heard').join()).toContain('is up to the operator');
    expect((await at.json('doubt')) as []).toHaveLength(1);
  });

  test('a session of its own without the guard’s descriptors is an operator’s: a login or a terminal below a guard', async () => {
    const at = place();
    const ref = await inDoubt(at);
    const resolve = `exec setsid -w ${unmarked.join(' ')} ${at.word} resolve ${ref} landed --result 1`;
    const script = `${resolve} 384<&- 385<&- > said 2>&1`;
    const said = await at.semel('run', 'job', '--per', 'none', '--', 'bash', '-c', script);
    expect([said.code, at.lines('said').join()]).toEqual([
      0,
      expect.not.stringContaining('is up to the operator'),
    ]);
  });

  test('the operator may let it decide, and history names the operator, the caller and the login', async () => {
    const at = place();
    const ref = await inDoubt(at);
    const script = `${at.word} resolve ${ref} landed --result 1`;
    const said = await at
      .with({ env: { SEMEL_OPERATOR: 'ada' } })
      .semel('run', 'job', '--per', 'none', '--', 'sh', '-c', script);
    expect(said.code).toBe(0);
    const { history } = (await at.json('show', ref.split('@')[0] as string)) as {
      history: { type: string; detail: Record<string, unknown> }[];
    };
    const { detail } = history.find(({ type }) => type === 'resolved') ?? {};
    expect(detail).toMatchObject({
      by: 'ada through a command of `semel run`',
      login: expect.stringMatching(/./),
    });
  });
});

test('history keeps the login name next to the given name', async () => {
  const at = place();
  const ref = await inDoubt(at);
  await at.semel('resolve', ref, 'landed', '--result', '1', '--by', 'the night shift');
  const { stdout } = await at.semel('show', ref.split('@')[0] as string);
  expect(stdout).toMatch(/the night shift \(login \S.*\) decided: landed/);
});

describe('a grant', () => {
  const agent = { CLAUDECODE: '1', SEMEL_OPERATOR: 'ada' };
  test.each([
    ['is in the environment that the agent was started from', [agent, { SEMEL_OPERATOR: 'ada' }], 'ada'],
    ['is not what the agent typed', [{ CLAUDECODE: '1' }, {}], undefined],
    ['is not what it put into a shell of its own', [agent, agent, {}], undefined],
    ['is not another one', [agent, { SEMEL_OPERATOR: 'bob' }], undefined],
    ['is not above an environment that cannot be read', [undefined, { SEMEL_OPERATOR: 'ada' }], undefined],
    ['is the container’s own', [agent, agent], 'ada'],
  ])('%s', (_, above, operator) => {
    expect(callerOf(agent, () => above)).toEqual({ agent: 'Claude Code', operator });
  });

  test.each([
    'SEMEL_AGENT',
    'AI_AGENT',
    'CODEX_SANDBOX',
    'CODEX_THREAD_ID',
    'CURSOR_AGENT',
    'GEMINI_CLI',
    'SEMEL_HELD',
  ])('is needed where %s is set', (name) => {
    expect(callerOf({ [name]: '1' }, () => []).agent).toBeDefined();
  });

  test('a mark that was taken off is seen on a process above', () => {
    const above = () => [{}, { SEMEL_AGENT: 'mcp' }];
    expect(callerOf({}, above, above).agent).toBe('an agent');
    expect(callerOf({}, above, () => [{}]).agent).toBeUndefined();
  });

  test.each([
    ['above the guard counts', [{ SEMEL_RUN: 'r' }, { SEMEL_OPERATOR: 'ada' }], 'ada'],
    [
      'below it does not',
      [{ SEMEL_OPERATOR: 'me' }, { SEMEL_RUN: 'r', SEMEL_OPERATOR: 'me' }, {}],
      undefined,
    ],
    [
      'between two guards does not',
      [{ SEMEL_RUN: 'r' }, { SEMEL_OPERATOR: 'me' }, { SEMEL_RUN: 'q' }, {}],
      undefined,
    ],
  ])('of a command that took its marks off: %s', (_, above, operator) => {
    const agent = 'a command of `semel run`';
    const env = { SEMEL_OPERATOR: 'me' };
    expect(
      callerOf(
        env,
        () => above,
        () => above,
      ),
    ).toEqual({ agent, operator });
  });

  test.each([
    ['an agent’s', { AI_AGENT: '1' }],
    ['of its own', { SEMEL_RUN: 'x' }],
  ])('typed below a guard is none, whatever mark is put on after it: %s', (_, mark) => {
    const env = { ...mark, SEMEL_OPERATOR: 'me' };
    const typed = [{ SEMEL_OPERATOR: 'me' }, { SEMEL_RUN: 'r' }, {}, undefined];
    expect(callerOf(env, () => typed).operator).toBeUndefined();
    const given = [{ SEMEL_OPERATOR: 'me' }, { SEMEL_RUN: 'r' }, { SEMEL_OPERATOR: 'me' }, undefined];
    expect(callerOf(env, () => given).operator).toBe('me');
  });

  test('below a guard is none, where the process that was given it is known by the guard’s pipes alone', () => {
    const typed = [{ SEMEL_OPERATOR: 'me', SEMEL_RUN: 'by its guard' }, {}];
    expect(callerOf({ AI_AGENT: '1', SEMEL_OPERATOR: 'me' }, () => typed).operator).toBeUndefined();
  });

  test('a mark of another agent above says nothing: programs start others without it', () => {
    const above = () => [{}, { CLAUDECODE: '1' }];
    expect(callerOf({}, above, above).agent).toBeUndefined();
  });

  test('callers that are not agents need none', () => {
    expect(callerOf({ CLAUDECODE: '', SEMEL_HELD: '', PATH: '/bin' }, () => [])).toEqual({
      agent: undefined,
      operator: undefined,
    });
  });
});
