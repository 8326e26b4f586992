// `semel policy`: creates policy files for `semel mcp` from a program's tools, and checks them. Runs no tool.

import { exportPolicies, readPolicyFile } from '../../mcp/index.ts';
import { smallText } from '../args/input.ts';
import { exitSoon, exportsOf } from '../args/module.ts';
import { command } from '../command.ts';
import { complain, print, printJson } from '../render/print.ts';
import { usageError } from '../usage.ts';

export default command({
  name: 'policy',
  takes: 'export <module> | check <file>',
  about: `What to do:
  export  prints the policy file for the tools that a module exports: tools made by semel.tool, alone or in an object, and those in an object \`policies\`, as guard takes it. The module runs; its tools do not
  check   reads a policy file as \`semel mcp\` does, and reports the first mistake. For editors, the package contains semel.policy.schema.json`,
  flags: {},
  examples: ['semel policy export ./tools.ts > semel.policy.json', 'semel policy check semel.policy.json'],
  async run({ values, positionals }) {
    const [word, path, ...more] = positionals;
    if (path === undefined || more.length > 0 || (word !== 'export' && word !== 'check'))
      throw usageError('policy', 'expects export <module>, or check <file>');
    return word === 'export' ? exportFrom(path) : check(path, values.json === true);
  },
});

function exportFrom(path: string): number {
  const { file, leftOut } = exportPolicies(exportsOf(path), path);
  printJson(file);
  for (const field of leftOut) complain(`${field} is left out: a policy file cannot express it`);
  exitSoon(0);
  return 0;
}

function check(path: string, isJson: boolean): number {
  const { tools = {} } = readPolicyFile(smallText('policy', path), path);
  const names = Object.keys(tools);
  if (isJson) printJson({ tools: names });
  else print(`${path} is in order: ${names.length} ${names.length === 1 ? 'tool' : 'tools'}.`);
  return 0;
}
