// The dashboard's files, from dashboard/: one script, one style sheet, no request to anywhere else.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'rolldown';

export async function bundleDashboard(root: string, folder: string): Promise<void> {
  const source = join(root, 'dashboard');
  mkdirSync(folder, { recursive: true });
  for (const [name, file] of [
    ['app', 'main.tsx'],
    ['theme', 'theme.ts'],
  ] as const)
    await build({
      cwd: root,
      input: { [name]: join(source, file) },
      platform: 'browser',
      logLevel: 'warn',
      tsconfig: false,
      transform: { target: 'es2022', jsx: { runtime: 'automatic', importSource: 'preact' } },
      checks: { bundlerTimings: false },
      output: { dir: folder, format: 'es', entryFileNames: '[name].js', minify: true, comments: false },
    });
  for (const name of ['index.html', 'icon.svg']) copyFileSync(join(source, name), join(folder, name));
  const styles = [join(root, 'node_modules/uplot/dist/uPlot.min.css'), join(source, 'app.css')];
  const css = styles.map((file) => readFileSync(file, 'utf8')).join('\n');
  writeFileSync(join(folder, 'app.css'), css.replace(/\/\*[\s\S]*?\*\//g, '').replace(/\s*\n\s*/g, '\n'));
}
