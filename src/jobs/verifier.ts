// The command that is asked whether it landed: exit 0 says yes, 1 says no, anything else says that it cannot tell.

import { spawn } from 'node:child_process';
import { landed, notLanded, unsure, type Verification } from '../runner/index.ts';
import { textOrBytes } from './output.ts';

const timeoutMs = 60_000;
const mostBytes = 1_048_576;

/** What it prints is the result, if it says yes. */
export async function askVerifier(
  command: string,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Verification> {
  const { code, stdout, why } = await asked(command, env, signal);
  if (code === 0) return landed({ exit: 0, stdout: textOrBytes(stdout), verified: true });
  if (code === 1) return notLanded();
  return unsure(why ?? `the verifier ended with ${code}`);
}

function asked(command: string, env: Readonly<Record<string, string>>, signal: AbortSignal) {
  return new Promise<{ code: number | undefined; stdout: Buffer; why?: string }>((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const child = spawn('/bin/sh', ['-c', command], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...env },
      timeout: timeoutMs,
      signal,
    });
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= mostBytes) chunks.push(chunk);
    });
    child.once('error', (error) => resolve({ code: undefined, stdout: Buffer.alloc(0), why: error.message }));
    child.once('close', (code, by) => {
      const stdout = Buffer.concat(chunks);
      resolve(
        code === null
          ? { code: undefined, stdout, why: `the verifier was ended by ${by}` }
          : { code, stdout },
      );
    });
  });
}
