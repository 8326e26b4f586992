// The command that is asked whether it landed: exit 0 says yes, 1 says no, anything else says that it cannot tell.

import { spawn } from 'node:child_process';
import { landed, notLanded, unsure, type Verification } from '../runner/index.ts';
import { textOrBytes } from './output.ts';

const timeoutMs = 60_000;
const mostBytes = 1_048_576;
const lingerMs = 200;

/** What it prints is the result, if it says yes; more than is kept is counted only. */
export async function askVerifier(
  command: string,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Verification> {
  const { code, stdout, bytes, why } = await asked(command, env, signal);
  const output = bytes > mostBytes ? { bytes } : { stdout: textOrBytes(stdout) };
  if (code === 0) return landed({ exit: 0, ...output, verified: true });
  if (code === 1) return notLanded();
  return unsure(why ?? `the verifier ended with ${code}`);
}

interface Asked {
  readonly code: number | undefined;
  readonly stdout: Buffer;
  readonly bytes: number;
  readonly why?: string;
}

function asked(command: string, env: Readonly<Record<string, string>>, signal: AbortSignal) {
  return new Promise<Asked>((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const child = spawn('/bin/sh', ['-c', command], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...env },
      timeout: timeoutMs,
      signal,
    });
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= mostBytes) chunks.push(chunk);
    });
    child.once('error', (error) =>
      resolve({ code: undefined, stdout: Buffer.alloc(0), bytes: 0, why: error.message }),
    );
    // What it left behind may hold its output open for ever.
    let linger: NodeJS.Timeout | undefined;
    child.once('exit', () => {
      linger = setTimeout(() => child.stdout.destroy(), lingerMs);
    });
    child.once('close', (code, by) => {
      clearTimeout(linger);
      const stdout = Buffer.concat(chunks);
      resolve(
        code === null
          ? { code: undefined, stdout, bytes, why: `the verifier was ended by ${by}` }
          : { code, stdout, bytes },
      );
    });
  });
}
