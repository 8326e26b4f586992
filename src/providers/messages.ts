// Services that send mail and messages. Few of them honour a key.

import { defineRow, type ProviderRow, plainHex, type RowFacts } from './row.ts';

const month = '2026-11';

export const nylasRow = defineRow({
  name: 'nylas',
  covers: 'The two send endpoints of v3',
  key: { header: 'Idempotency-Key' },
  fits: /^.{1,256}$/,
  window: '1h',
  inFlight: { status: 409, code: 'api.concurrent_idempotent_request' },
  mismatch: { status: 409, code: 'api.invalid_idempotent_request' },
  errors: 'replayed',
  verify: 'Search the sent messages.',
  hosts: ['api.us.nylas.com', 'api.eu.nylas.com'],
  source: 'https://developer.nylas.com/docs/v3/email/idempotent-send/',
  checkedAt: '2026-11-16',
  verified: true,
});

export const telnyxRow = defineRow({
  name: 'telnyx',
  covers: 'Endpoints whose reference names the header',
  key: { header: 'Idempotency-Key' },
  fits: /^[A-Za-z0-9_:-]{1,255}$/,
  mismatch: { status: 422 },
  errors: 'tried again',
  verify: 'List the messages.',
  hosts: ['api.telnyx.com'],
  source: 'https://developers.telnyx.com/docs/development/api-fundamentals/idempotency',
  checkedAt: '2026-11-16',
  verified: true,
});

export const brevoRow = defineRow({
  name: 'brevo',
  covers: 'Transactional mail',
  key: { tool: '`headers.idempotencyKey` of the body' },
  fits: /^[0-9a-f-]{36}$/,
  window: '30m',
  verify: 'List its events, by a tag.',
  hosts: ['api.brevo.com'],
  source: 'https://developers.brevo.com/docs/heterogenous-versions-batch-emails',
  checkedAt: '2026-11-16',
  verified: true,
});

export const discordRow = defineRow({
  name: 'discord',
  covers: 'Create Message, with `enforce_nonce: true`',
  key: { bodyField: 'nonce' },
  fits: /^.{1,25}$/,
  format: (uuid) => plainHex(uuid).slice(0, 25),
  errors: 'current state',
  verify: 'Read the channel, and compare `nonce` or the text.',
  hosts: ['discord.com'],
  source: 'https://github.com/discord/discord-api-docs',
  checkedAt: month,
  verified: true,
});

/** `ctx.key` is a Message-ID of this domain. No server drops a second mail by it; `verify` finds the first. */
export function smtpRow(domain: string): ProviderRow {
  return defineRow({
    name: 'smtp',
    covers: 'Any mail server, Gmail among them',
    key: { tool: '`Message-ID`' },
    fits: /^<[0-9a-f-]{36}@[^<>@\s]+>$/,
    format: (uuid) => `<${uuid}@${domain}>`,
    verify: 'Search the sent mail (Gmail: `rfc822msgid:`), if your server keeps the Message-ID.',
    hosts: [],
    source: 'https://www.rfc-editor.org/rfc/rfc5322',
    checkedAt: month,
    verified: false,
  });
}

/** It documents no key: a lost answer ends in doubt, and `verify` is the way out. */
function keyless(facts: Omit<RowFacts, 'key' | 'verified' | 'checkedAt'>): ProviderRow {
  return defineRow({ ...facts, key: 'none', checkedAt: month, verified: false });
}

export const twilioRow = keyless({
  name: 'twilio',
  covers: 'Messages and calls',
  verify: '`verifyTwilioMessage`, by recipient and text.',
  hosts: ['api.twilio.com'],
  source: 'https://www.twilio.com/docs/messaging/api/message-resource',
});

export const slackRow = keyless({
  name: 'slack',
  covers: 'chat.postMessage',
  verify: '`verifySlackMessage`, by `metadata`.',
  hosts: ['slack.com'],
  source: 'https://docs.slack.dev/reference/methods/chat.postMessage',
});

export const telegramRow = keyless({
  name: 'telegram',
  covers: 'Bot API',
  verify: 'Not at all: a bot cannot search what it sent.',
  hosts: ['api.telegram.org'],
  source: 'https://core.telegram.org/bots/api',
});

export const postmarkRow = keyless({
  name: 'postmark',
  covers: 'Sending',
  verify: '`verifyPostmarkEmail`, by `Metadata`.',
  hosts: ['api.postmarkapp.com'],
  source: 'https://postmarkapp.com/developer/api/email-api',
});

export const sendgridRow = keyless({
  name: 'sendgrid',
  covers: 'Mail send v3',
  verify: '`verifySendGridEmail`, by `custom_args`; or the event webhook.',
  hosts: ['api.sendgrid.com'],
  source: 'https://www.twilio.com/docs/sendgrid/api-reference/mail-send/mail-send',
});

export const mailgunRow = keyless({
  name: 'mailgun',
  covers: 'Messages',
  verify: 'Events, by a `v:` variable or by `Message-Id`.',
  hosts: ['api.mailgun.net', 'api.eu.mailgun.net'],
  source: 'https://documentation.mailgun.com/docs/mailgun/api-reference',
});

export const sesRow = keyless({
  name: 'aws.ses',
  covers: 'Amazon SES',
  verify: 'Event stream, by a tag of the configuration set.',
  hosts: [],
  source: 'https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html',
});
