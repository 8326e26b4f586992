// A git push, by asking the remote which commit the ref is at. Runs `git`, and changes nothing in the repository but its
// objects.

import { landed, notLanded, unsure } from '../../core/verification.ts';
import { answer, type Verifier } from './search.ts';

interface Push {
  /** A name or an address. @default 'origin' */
  readonly remote?: string;
  /** In full: `refs/heads/main`, `refs/tags/v1.2.3`. */
  readonly ref: string;
  /** The id of what was pushed: a commit, or a tag object. */
  readonly commit: string;
}

interface GitOptions<Args> {
  readonly push: (args: Args) => Push;
  /** The local repository. @default the working directory */
  readonly cwd?: string;
}

export interface GitFound {
  readonly ref: string;
  readonly commit: string;
}

/**
 * Finds what was pushed: the ref is at the commit, or has moved on from it. Cannot see a push that somebody has since
 * overwritten by force (a ref that went another way is "unsure"), nor one whose ref was deleted since: that is "not landed".
 */
export function verifyGitPush<Args>({ push, cwd }: GitOptions<Args>): Verifier<Args, GitFound> {
  return (args, ctx) =>
    answer<GitFound>('git', async () => {
      const { remote = 'origin', ref, commit } = push(args);
      if (!/^[0-9a-f]{40}([0-9a-f]{24})?$/.test(commit))
        return unsure(`${commit} is not the full id of a commit`);
      if (!/^refs\/[^\s:*?[\\^~-][^\s:*?[\\^~]*$/.test(ref) || remote.startsWith('-'))
        return unsure(`${remote} ${ref} is not a remote and the full name of a ref`);
      const git = await createGit(cwd, ctx.signal);
      const there = await findRef();
      const found = landed({ ref, commit }, `${ref}@${commit}`);
      if (there === undefined) return notLanded();
      if (there === commit) return found;
      // Objects only: no tracking ref moves.
      await git('fetch', '--quiet', '--no-tags', '--refmap=', '--no-write-fetch-head', remote, ref);
      if (await isAncestor(commit, there)) return found;
      return (await isAncestor(there, commit))
        ? notLanded()
        : unsure(`${ref} of ${remote} is at ${there}, which neither has ${commit} nor leads to it`);

      async function findRef(): Promise<string | undefined> {
        const { stdout } = await git('ls-remote', remote, ref);
        const line = stdout.split('\n').find((each) => each.endsWith(`\t${ref}`));
        return line?.split('\t')[0];
      }

      async function isAncestor(older: string, newer: string): Promise<boolean> {
        const { code } = await git('merge-base', '--is-ancestor', older, newer);
        return code === 0;
      }
    });
}

/** Loaded when it is asked for: the other verifiers run where there are no processes. */
async function createGit(cwd: string | undefined, signal: AbortSignal) {
  const { execFile } = await import('node:child_process');
  // It must not wait for a password that nobody types.
  const env = { ...process.env, GIT_TERMINAL_PROMPT: '0', LC_ALL: 'C' };
  return (...args: string[]) =>
    new Promise<{ readonly stdout: string; readonly code: number }>((resolve, reject) => {
      execFile('git', args, { cwd, env, signal, timeout: 60_000 }, (error, stdout, stderr) => {
        if (error === null) resolve({ stdout, code: 0 });
        // `merge-base --is-ancestor` says "no" by 1; anything else is a failure.
        else if (error.code === 1 && args[0] === 'merge-base') resolve({ stdout, code: 1 });
        else reject(new Error(`git ${args[0]}: ${(stderr || error.message).trim().slice(0, 300)}`));
      });
    });
}
