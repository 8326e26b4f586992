// The command that is asked whether it landed: exit 0 says yes, 1 says no, anything else says that it cannot tell.

import { spawn } from 'node:child_process';
import { landed, notLanded, unsure, type Verification } from '../call/index.ts';
import { mostBytes } from './life/child.ts';
import { textOrBytes } from './output.ts';
import { firstBytes } from './passing.ts';

const longestMs = 60_000;
/** From TERM to KILL. */
const graceMs = 2_000;
/** What it printed is there by then. */
const lingerMs = 200;

/** What it prints is the result, if it says yes. */
export async function askVerifier(
  command: string,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
  withinMs = longestMs,
): Promise<Verification> {
  const { code, stdout, bytes, why } = await asked(command, env, signal, withinMs);
  if (code === 0)
    return landed(
      stdout === undefined ? { bytes, verified: true } : { stdout: textOrBytes(stdout), verified: true },
    );
  if (code === 1) return notLanded();
  return unsure(why ?? `the verifier ended with ${code}`);
}

interface Answer {
  readonly code: number | undefined;
  readonly stdout: Buffer | undefined;
  readonly bytes: number;
  readonly why?: string;
}

function asked(
  command: string,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
  withinMs: number,
): Promise<Answer> {
  return new Promise((resolve) => {
    const kept = firstBytes(mostBytes);
    // It leads a group of its own, so that it is ended with all that it started.
    const child = spawn('/bin/sh', ['-c', command], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...env },
      detached: true,
    });
    const tell = (name: NodeJS.Signals) => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, name);
      } catch {
        // Nobody is left.
      }
    };
    let isStopped = false;
    const stop = () => {
      isStopped = true;
      tell('SIGTERM');
      setTimeout(() => tell('SIGKILL'), graceMs).unref();
    };
    const timer = setTimeout(stop, withinMs);
    signal.addEventListener('abort', stop);
    process.once('exit', stop);
    const end = (code: number | undefined, why?: string) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      process.off('exit', stop);
      child.stdout.destroy();
      const told = why === undefined ? {} : { why };
      resolve({ code, stdout: kept.bytes(), bytes: kept.count(), ...told });
    };
    child.stdout.on('data', kept.add);
    child.once('error', (error) => end(undefined, error.message));
    child.once('exit', (code, by) => {
      // With what code it ends once it is told to says nothing of the effect.
      const why = isStopped
        ? 'the verifier did not answer in time'
        : code === null
          ? `the verifier was ended by ${by}`
          : undefined;
      const answer = () => end(why === undefined ? (code ?? undefined) : undefined, why);
      // Whoever it left behind may hold its output open.
      const late = setTimeout(answer, lingerMs);
      child.stdout.once('close', () => {
        clearTimeout(late);
        answer();
      });
    });
  });
}
