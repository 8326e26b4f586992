// A stranger's project: an empty folder outside the repository with the packed semel installed, offline, in an
// empty home. Every program gets its own working folder and home inside, so that none sees what another left.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { pack } from '../pack.ts';

export interface Run {
  stdout: string;
  /** What stdout and stderr said, as a terminal would have shown it. */
  output: string;
  /** Nothing when it ended well. */
  problem?: string;
}

export interface Project extends Disposable {
  folder: string;
  /** Makes packages of the repository's node_modules importable here; those it does not have are left out. */
  link(packages: Iterable<string>): void;
  /** Runs a command in a working folder of this name, with a home of its own. */
  run(name: string, command: string, args: string[], limitMs: number): Promise<Run>;
  write(file: string, text: string): void;
}

export function createProject(repository: string): Project {
  const temporary = mkdtempSync(join(tmpdir(), 'semel-docs-'));
  const folder = join(temporary, 'project');
  mkdirSync(folder);

  const project: Project = {
    folder,
    write(file, text) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), text);
    },
    link(packages) {
      for (const name of packages) {
        const target = join(repository, 'node_modules', name);
        const link = join(folder, 'node_modules', name);
        if (!existsSync(target) || existsSync(link)) continue;
        mkdirSync(dirname(link), { recursive: true });
        symlinkSync(target, link, 'dir');
      }
    },
    run(name, command, args, limitMs) {
      const cwd = join(folder, name);
      mkdirSync(cwd, { recursive: true });
      return runLimited(command, args, { cwd, env: environment(join(temporary, 'homes', name)), limitMs });
    },
    [Symbol.dispose]() {
      rmSync(temporary, { recursive: true, force: true });
    },
  };

  function environment(home: string): Record<string, string> {
    const stateHome = join(home, '.local/state');
    const tmp = join(home, 'tmp');
    for (const folder of [stateHome, tmp]) mkdirSync(folder, { recursive: true });
    const path = [join(folder, 'node_modules/.bin'), dirname(process.execPath), process.env.PATH ?? ''];
    return {
      HOME: home,
      XDG_STATE_HOME: stateHome,
      TMPDIR: tmp,
      PATH: path.join(delimiter),
      LANG: 'C.UTF-8',
    };
  }

  project.write('package.json', '{ "name": "docs", "private": true, "type": "module" }\n');
  const tarball = pack(temporary);
  const install = spawnSync('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], {
    cwd: folder,
    env: environment(join(temporary, 'homes/npm')),
    encoding: 'utf8',
  });
  if (install.status !== 0) {
    project[Symbol.dispose]();
    throw new Error(`the packed tarball does not install offline:\n${install.stdout}${install.stderr}`);
  }
  return project;
}

function runLimited(
  command: string,
  args: string[],
  options: { cwd: string; env: Record<string, string>; limitMs: number },
): Promise<Run> {
  const { cwd, env, limitMs } = options;
  return new Promise((resolve) => {
    // A process group of its own: what a block started in the background ends with it.
    const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    let output = '';
    let problem: string | undefined;
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      output += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const limit = setTimeout(() => {
      problem = `did not end within ${limitMs / 1000} s`;
      killGroup(child.pid);
    }, limitMs);
    child.on('error', (error) => {
      problem = error.message;
    });
    child.on('exit', (code, signal) => {
      if (code !== 0) problem ??= `ended with ${signal ?? `exit code ${code}`}`;
      killGroup(child.pid);
    });
    child.on('close', () => {
      clearTimeout(limit);
      resolve({ stdout, output, ...(problem ? { problem } : {}) });
    });
  });
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group has ended by itself.
  }
}
