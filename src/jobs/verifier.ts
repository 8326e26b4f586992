// The command that checks whether an effect landed: exit 0 means yes, 1 means no, anything else means it cannot tell.

import { spawn } from 'node:child_process';
import { landed, notLanded, unsure, type Verification } from '../core/verification.ts';
import { maxOutputBytes } from './liveness/child.ts';
import { firstBytes, textOrBytes } from './output.ts';

const timeoutMs = 60_000;
/** From TERM to KILL. */
const graceMs = 2_000;
/** How long its output may take after its exit. */
const lingerMs = 200;

/** If it exits with 0, its stdout is the result. */
export async function askVerifier(
  command: string,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
  withinMs = timeoutMs,
): Promise<Verification> {
  const { code, stdout, bytes, why } = await runVerifier(command, env, signal, withinMs);
  if (code === 0)
    return landed(
      stdout === undefined ? { bytes, verified: true } : { stdout: textOrBytes(stdout), verified: true },
    );
  if (code === 1) return notLanded();
  return unsure(why ?? `the verifier exited with ${code}`);
}

interface Answer {
  readonly code: number | undefined;
  readonly stdout: Buffer | undefined;
  readonly bytes: number;
  readonly why: string | undefined;
}

function runVerifier(
  command: string,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
  withinMs: number,
): Promise<Answer> {
  return new Promise((resolve) => {
    const kept = firstBytes(maxOutputBytes);
    // Its own process group, so that it is stopped with everything it started.
    const child = spawn('/bin/sh', ['-c', command], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...env },
      detached: true,
    });
    const send = (name: NodeJS.Signals) => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, name);
      } catch {
        // No process is left.
      }
    };
    let isStopped = false;
    const stop = () => {
      isStopped = true;
      send('SIGTERM');
      setTimeout(() => send('SIGKILL'), graceMs).unref();
    };
    const timer = setTimeout(stop, withinMs);
    signal.addEventListener('abort', stop);
    process.once('exit', stop);
    const end = (code: number | undefined, why?: string) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      process.off('exit', stop);
      child.stdout.destroy();
      resolve({ code, stdout: kept.bytes(), bytes: kept.count(), why });
    };
    child.stdout.on('data', kept.add);
    child.once('error', (error) => end(undefined, error.message));
    child.once('exit', (code, by) => {
      // Once it got a signal, its exit code says nothing about the effect.
      const why = isStopped
        ? 'the verifier did not answer in time'
        : code === null
          ? `the verifier was ended by ${by}`
          : undefined;
      const answer = () => end(why === undefined ? (code ?? undefined) : undefined, why);
      // A process that it left behind may hold its output open.
      const late = setTimeout(answer, lingerMs);
      child.stdout.once('close', () => {
        clearTimeout(late);
        answer();
      });
    });
  });
}
