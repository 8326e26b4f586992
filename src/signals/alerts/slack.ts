// A doubt as a Slack message: what is known, and what to type. Strangers' text stands in code, where nothing is a link or a mention.

import { escapeInvisible } from '../../core/visible.ts';
import type { AlertEvent } from './event.ts';

export function slackMessage({ type, data }: AlertEvent): object {
  const isOpen = type === 'dev.semel.doubt.opened';
  const title = isOpen
    ? `:warning: *${inText(data.tool)}* is in doubt: it may or may not have happened.`
    : `:white_check_mark: *${inText(data.tool)}* is decided: *${inText(data.outcome ?? '')}*${data.by === undefined ? '' : ` by ${inText(data.by)}`}.`;
  const facts = [
    ['Namespace', data.namespace],
    ['Record', data.ref],
    ['Error', isOpen ? data.error : undefined],
    ['Sent at', data.dispatchedAt],
    ['Attempts', String(data.attempts)],
    ['Provider id', data.remoteRef],
    ['Sent key', data.providerKey],
  ] as const;
  const lines = facts.flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${code(value)}`]));
  const commands = [data.show, ...(data.resolve === undefined ? [] : [data.resolve])].join('\n');
  const link = data.link === undefined ? [] : [`<${escapeMarkup(data.link)}|Open in the dashboard>`];
  const text = [title, ...lines, block(commands), ...link].join('\n');
  return {
    // For notifications.
    text: `${inText(data.tool)} ${isOpen ? 'is in doubt' : `is decided: ${inText(data.outcome ?? '')}`}`,
    blocks: [{ type: 'section', text: { type: 'mrkdwn', text: text.slice(0, maxText) } }],
    unfurl_links: false,
    unfurl_media: false,
  };
}

/** Slack refuses longer sections. */
const maxText = 3_000;
const maxFact = 300;

function escapeMarkup(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Outside of code, also without the marks of bold, italic, struck and quoted text. */
function inText(text: string): string {
  return escapeMarkup(escapeInvisible(text).replace(/[*_~`]/g, ' ')).slice(0, maxFact);
}

function code(text: string): string {
  return `\`${escapeMarkup(escapeInvisible(text).replaceAll('`', "'").slice(0, maxFact))}\``;
}

/** A command is pasted, so nothing in it is replaced: another mark in place of a backtick could end a quoted word of it. */
function block(commands: string): string {
  if (commands.includes('`'))
    return 'Its commands hold a backtick, which Slack cannot show: run `semel doubt`.';
  return `\`\`\`${escapeMarkup(commands)}\`\`\``;
}
