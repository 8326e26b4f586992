// Where alerts go, and who watches: the options that `semel watch` and `semel serve` share.

import { dirname, join } from 'node:path';
import { rerunsByItself } from '../../../jobs/index.ts';
import {
  type Alert,
  commandTarget,
  createWatch,
  makeSecret,
  readSecrets,
  slackTarget,
  type Target,
  type Watch,
  webhookTarget,
} from '../../../signals/index.ts';
import type { Store } from '../../../store/store.ts';
import { defaultPath } from '../../../stores/sqlite/index.ts';
import { smallText } from '../../args/input.ts';
import type { ValuesOf } from '../../command.ts';
import { text, texts } from '../../flags.ts';
import { chosenNamespace, ledgerOptions } from '../../ledger.ts';
import { complain, printAside, relative } from '../../render/print.ts';
import { isJobLock, isStep } from '../../render/state.ts';
import { usageError } from '../../usage.ts';
import { localToken, readOwn } from '../serve/token-file.ts';

export const alertFlags = {
  webhook: texts('<url>', 'send doubts there as signed webhooks; @file reads the URL from a file'),
  slack: texts(
    '<url>',
    "send doubts to this Slack webhook; @file: it is a secret, and other users can see a command's options",
  ),
  exec: texts('<command>', 'run this command for each doubt, with the event as JSON on its standard input'),
  'secret-file': text('<file>', 'signs webhooks (default: SEMEL_WEBHOOK_SECRET, otherwise one is made)'),
  older: text('<duration>', 'only doubts older than this: the next call may settle younger ones'),
  url: text('<url>', 'where the dashboard is, for a link in alerts'),
} as const;

type Values = ValuesOf<typeof alertFlags> & { readonly namespace: string | undefined };

export function alertTargets(command: 'watch' | 'serve', values: Values): readonly Target[] {
  const { webhook = [], slack = [], exec = [] } = values;
  const address = (given: string) =>
    given.startsWith('@') ? smallText(command, given.slice(1)).trim() : given;
  const secrets = webhook.length === 0 ? [] : readSecrets(findSecret(command, values['secret-file']));
  const targets = [
    ...webhook.map((url) => webhookTarget(address(url), secrets)),
    ...slack.map((url) => slackTarget(address(url))),
    ...exec.map(commandTarget),
  ];
  const { url } = values;
  if (url !== undefined && !(/^https?:\/\//.test(url) && URL.canParse(url)))
    throw usageError(command, '--url is not a URL', 'Write it like https://ledger.example.com.');
  return targets;
}

/** Never an option: other users can see the options of a command. */
function findSecret(command: string, path: string | undefined): string {
  const given = process.env.SEMEL_WEBHOOK_SECRET;
  if (path === undefined && given !== undefined && given !== '') return given;
  if (path !== undefined) {
    const secret = readOwn(path);
    if (secret === undefined) throw usageError(command, `there is no ${path}`);
    return secret;
  }
  const own = join(dirname(defaultPath()), 'webhook.secret');
  const { token, isNew } = localToken(own, makeSecret);
  printAside(`semel: webhooks are signed with the secret in ${own}${isNew ? ' (new)' : ''}`);
  return token;
}

export interface WatchTerms {
  readonly store: Store;
  readonly targets: readonly Target[];
  readonly olderMs: number;
  /** Where the dashboard is. */
  readonly url: string | undefined;
  readonly onAlert: (alert: Alert) => void;
}

export async function watchFor(values: Pick<Values, 'namespace'>, terms: WatchTerms): Promise<Watch> {
  const facts = await terms.store.open();
  return createWatch({
    ...terms,
    namespace: chosenNamespace(values),
    needsDecision: (record) =>
      record.inDoubt && !isJobLock(record) && !isStep(record) && !rerunsByItself(record, Date.now()),
    optionsFor: (namespace) => ledgerOptions(namespace, facts),
    onWarning: complain,
  });
}

export function describeAlert({ kind, doubt, target, error, again }: Alert): string {
  const what = `${doubt.tool} ${doubt.ref} ${kind === 'opened' ? 'is in doubt' : 'is decided'}`;
  if (error === undefined) return `${what}: sent to ${target}`;
  const next = again === undefined ? 'it is not tried again' : `tried again ${relative(again)}`;
  return `${what}: not sent to ${target} (${error}); ${next}`;
}
