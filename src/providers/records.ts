// Services that keep records: books, tickets, tasks, contacts. Most accept an id that the client chooses.

import { defineRow, plainHex } from './row.ts';

const month = '2026-11';

export const quickbooksRow = defineRow({
  name: 'quickbooks',
  covers: 'QuickBooks Online, per company',
  key: { queryField: 'requestid' },
  fits: /^.{1,36}$/,
  errors: 'replayed',
  verify: 'Query by `DocNumber` or `PrivateNote`.',
  note: '50 characters, 36 in a batch.',
  hosts: ['quickbooks.api.intuit.com', 'sandbox-quickbooks.api.intuit.com'],
  source: 'https://blogs.intuit.com/2015/04/06/15346',
  checkedAt: month,
  verified: true,
});

export const xeroRow = defineRow({
  name: 'xero',
  covers: 'POST, PUT and PATCH',
  key: { header: 'Idempotency-Key' },
  fits: /^.{1,128}$/,
  window: '5m',
  verify: 'Filter by `Reference` or `InvoiceNumber`.',
  hosts: ['api.xero.com'],
  source: 'https://github.com/XeroAPI/Xero-OpenAPI',
  checkedAt: month,
  verified: false,
});

export const zendeskRow = defineRow({
  name: 'zendesk',
  covers: 'POST /tickets',
  key: { header: 'Idempotency-Key' },
  fits: /^.{1,255}$/,
  window: '2h',
  mismatch: { status: 400, code: 'IdempotentRequestError' },
  errors: 'replayed',
  verify: 'Look up by `external_id`: set it to `ctx.key`.',
  hosts: ['zendesk.com'],
  source: 'https://developer.zendesk.com/api-reference/ticketing/introduction/',
  checkedAt: month,
  verified: false,
});

export const mondayRow = defineRow({
  name: 'monday',
  covers: 'Mutations of the GraphQL API',
  key: { header: 'Idempotency-Key' },
  window: '30m',
  inFlight: { status: 409 },
  verify: 'Query the board.',
  hosts: ['api.monday.com'],
  source: 'https://developer.monday.com/api-reference/docs/idempotency',
  checkedAt: '2026-11-16',
  verified: true,
});

export const linearRow = defineRow({
  name: 'linear',
  covers: 'Create mutations',
  key: { tool: '`id` of the input' },
  fits: /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  verify: '`verifyLinearIssue`, by the id, `ctx.key`.',
  note: 'A second create with that id is not documented.',
  hosts: ['api.linear.app'],
  source: 'https://linear.app/developers/graphql',
  checkedAt: month,
  verified: false,
});

export const googleCalendarRow = defineRow({
  name: 'google.calendar',
  covers: 'events.insert',
  key: { tool: '`id` of the event' },
  fits: /^[a-v0-9]{5,1024}$/,
  format: plainHex,
  mismatch: { status: 409 },
  verify: 'Get the event by its id, `ctx.key`.',
  note: 'It may not notice a second event with that id.',
  hosts: ['www.googleapis.com'],
  source: 'https://developers.google.com/workspace/calendar/api/v3/reference/events/insert',
  checkedAt: month,
  verified: true,
});

const upsert = {
  note: 'An upsert writes the fields again: they must be safe to repeat.',
  checkedAt: month,
  verified: true,
} as const;

export const salesforceRow = defineRow({
  ...upsert,
  name: 'salesforce',
  covers: 'Upsert by an external id field',
  key: { tool: 'the value of the external id' },
  verify: 'Get the record by its external id.',
  hosts: ['salesforce.com'],
  source: 'https://developer.salesforce.com/docs/atlas.en-us.api_rest.meta/api_rest/dome_upsert.htm',
});

export const hubspotRow = defineRow({
  ...upsert,
  name: 'hubspot',
  covers: 'Batch upsert by a unique property',
  key: { tool: 'the value of the unique property' },
  verify: 'Search by the unique property.',
  hosts: ['api.hubapi.com'],
  source: 'https://developers.hubspot.com/docs/api-reference',
});

export const notionRow = defineRow({
  name: 'notion',
  covers: 'Pages and comments',
  key: 'none',
  verify: '`verifyNotionPage`, by a property.',
  hosts: ['api.notion.com'],
  source: 'https://developers.notion.com/reference/intro',
  checkedAt: month,
  verified: false,
});

export const githubRow = defineRow({
  name: 'github',
  covers: 'Issues and comments',
  key: 'none',
  verify: '`verifyGitHubIssue` and others, by a hidden comment.',
  note: 'Labels and refs are harmless to repeat.',
  hosts: ['api.github.com'],
  source: 'https://docs.github.com/rest',
  checkedAt: month,
  verified: false,
});
