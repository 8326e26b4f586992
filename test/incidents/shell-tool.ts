// The outside world as a script sees it: a command that makes the effect, and one that looks for it.

import { find, send } from './actor.ts';

const [, , what, intent = '', body = ''] = process.argv;
const target = { url: process.env.TARGET_URL ?? '' };

if (what === 'post') {
  // As `curl --fail` does.
  const sent = await send(target, intent, { body }).catch(() => undefined);
  if (sent === undefined) process.exitCode = 22;
  else console.log(sent.effect);
} else {
  const found = await find(target, intent);
  if (found === undefined) process.exitCode = 1;
  else console.log(found.effect);
}
