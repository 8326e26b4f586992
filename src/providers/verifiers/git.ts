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
        return unsure(`${hidePassword(remote)} ${ref} is not a remote and the full name of a ref`);
      const git = await createGit(cwd, ctx.signal);
      const [address, ...others] = await listPushAddresses();
      if (others.length > 0)
        return unsure(`${hidePassword(remote)} pushes to ${others.length + 1} addresses`);
      const { there, isGit } = await findRef();
      const found = landed({ ref, commit }, `${ref}@${commit}`);
      // Any web server may answer with an empty list, and a plain file of refs may be out of date.
      const missing = () =>
        isGit
          ? notLanded()
          : unsure(
              `${hidePassword(remote)} does not answer as a git server, so what it lacks proves nothing`,
            );
      if (there === undefined) return missing();
      if (there === commit) return found;
      // Objects only: no tracking ref moves.
      await git('fetch', '--quiet', '--no-tags', '--refmap=', '--no-write-fetch-head', address, ref);
      if (await isAncestor(commit, there)) return found;
      return (await isAncestor(there, commit))
        ? missing()
        : unsure(
            `${ref} of ${hidePassword(remote)} is at ${there}, which neither has ${commit} nor leads to it`,
          );

      /** What is fetched from elsewhere (`remote.origin.pushurl`) says nothing about a push. */
      async function listPushAddresses(): Promise<[string, ...string[]]> {
        const asked = git('remote', 'get-url', '--push', '--all', remote);
        // Not the name of a remote, but an address.
        const { stdout } = await asked.catch(() => ({ stdout: '' }));
        const [first = remote, ...more] = stdout.split('\n').filter((line) => line !== '');
        return [first, ...more];
      }

      /** `isGit`: the other side spoke git's own protocol. */
      async function findRef(): Promise<{ there: string | undefined; isGit: boolean }> {
        const { stdout, stderr } = await git('ls-remote', address, ref);
        const line = stdout.split('\n').find((each) => each.endsWith(`\t${ref}`));
        return { there: line?.split('\t')[0], isGit: tracedPacket.test(stderr) };
      }

      async function isAncestor(older: string, newer: string): Promise<boolean> {
        const { code } = await git('merge-base', '--is-ancestor', older, newer);
        return code === 0;
      }
    });
}

/** An address may hold a token, as in CI. The reason of a doubt is kept in the ledger. */
function hidePassword(text: string): string {
  return text.slice(0, 300).replace(/\/\/\S*@/g, '//…@');
}

/** One line of git's trace, per message of its protocol. A server without the protocol ("dumb HTTP") exchanges none. */
const tracedPacket = /^\S+ pkt-line\.c:\d+ +packet: .*\n?/m;

/** Loaded when it is asked for: the other verifiers run where there are no processes. */
async function createGit(cwd: string | undefined, signal: AbortSignal) {
  const { execFile } = await import('node:child_process');
  // It must not wait for a password that nobody types.
  const env = { ...process.env, GIT_TERMINAL_PROMPT: '0', LC_ALL: 'C', GIT_TRACE_PACKET: '1' };
  const options = { cwd, env, signal, timeout: 60_000, maxBuffer: 64 * 1024 * 1024 };
  return (...args: string[]) =>
    new Promise<{ stdout: string; stderr: string; code: number }>((resolve, reject) => {
      execFile('git', args, options, (error, stdout, stderr) => {
        if (error === null) resolve({ stdout, stderr, code: 0 });
        // `merge-base --is-ancestor` exits with 1 for "no"; anything else is a failure.
        else if (error.code === 1 && args[0] === 'merge-base') resolve({ stdout, stderr, code: 1 });
        else {
          const said = stderr.replaceAll(new RegExp(tracedPacket, 'gm'), '').trim();
          reject(new Error(`git ${args[0]}: ${hidePassword(said || error.message)}`));
        }
      });
    });
}
