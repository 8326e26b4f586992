// The door `semel/providers`: what outside services honour, as a `Provider` for a contract and as rows to read.

import type { Provider } from '../core/contract/provider.ts';
import * as cloud from './cloud.ts';
import * as messages from './messages.ts';
import { openaiRow } from './openai.ts';
import * as payments from './payments.ts';
import * as records from './records.ts';
import { resendRow } from './resend.ts';
import type { ProviderRow } from './row.ts';
import { stripeRow, stripeV2Row } from './stripe.ts';

export type { Answer } from './answer.ts';
export { defineRow, type KeyAnswer, type KeyPlace, type ProviderRow, type RowFacts } from './row.ts';

export const stripe: Provider = stripeRow.provider;
export const stripeV2: Provider = stripeV2Row.provider;
export const openai: Provider = openaiRow.provider;
export const resend: Provider = resendRow.provider;
export const square: Provider = payments.squareRow.provider;
export const paypalOrders: Provider = payments.paypalOrdersRow.provider;
export const paypalPayments: Provider = payments.paypalPaymentsRow.provider;
export const paypalPayouts: Provider = payments.paypalPayoutsRow.provider;
export const adyen: Provider = payments.adyenRow.provider;
export const braintree: Provider = payments.braintreeRow.provider;
export const checkout: Provider = payments.checkoutRow.provider;
export const coinbase: Provider = payments.coinbaseRow.provider;
export const plaidWallet: Provider = payments.plaidWalletRow.provider;
export const plaidTransfer: Provider = payments.plaidTransferRow.provider;
export const wise: Provider = payments.wiseRow.provider;
export const shopify: Provider = payments.shopifyRow.provider;
export const nylas: Provider = messages.nylasRow.provider;
export const telnyx: Provider = messages.telnyxRow.provider;
export const brevo: Provider = messages.brevoRow.provider;
export const discord: Provider = messages.discordRow.provider;
/** A row for your own domain, which follows the @ of the Message-ID. */
export function smtp(domain: string): Provider {
  return messages.smtpRow(domain).provider;
}
export const twilio: Provider = messages.twilioRow.provider;
export const slack: Provider = messages.slackRow.provider;
export const telegram: Provider = messages.telegramRow.provider;
export const postmark: Provider = messages.postmarkRow.provider;
export const sendgrid: Provider = messages.sendgridRow.provider;
export const mailgun: Provider = messages.mailgunRow.provider;
export const ses: Provider = messages.sesRow.provider;
export const quickbooks: Provider = records.quickbooksRow.provider;
export const xero: Provider = records.xeroRow.provider;
export const zendesk: Provider = records.zendeskRow.provider;
export const monday: Provider = records.mondayRow.provider;
export const linear: Provider = records.linearRow.provider;
export const googleCalendar: Provider = records.googleCalendarRow.provider;
export const salesforce: Provider = records.salesforceRow.provider;
export const hubspot: Provider = records.hubspotRow.provider;
export const notion: Provider = records.notionRow.provider;
export const github: Provider = records.githubRow.provider;
export const ec2: Provider = cloud.ec2Row.provider;
export const dynamodb: Provider = cloud.dynamodbRow.provider;
export const sqsFifo: Provider = cloud.sqsFifoRow.provider;
export const googleCompute: Provider = cloud.googleComputeRow.provider;
export const googleCloud: Provider = cloud.googleCloudRow.provider;
export const azure: Provider = cloud.azureRow.provider;
export const kubernetes: Provider = cloud.kubernetesRow.provider;

/** Every row, in the order of the documentation. */
export const providers: readonly ProviderRow[] = [
  stripeRow,
  stripeV2Row,
  openaiRow,
  resendRow,
  payments.squareRow,
  payments.paypalOrdersRow,
  payments.paypalPaymentsRow,
  payments.paypalPayoutsRow,
  payments.adyenRow,
  payments.braintreeRow,
  payments.checkoutRow,
  payments.coinbaseRow,
  payments.plaidWalletRow,
  payments.plaidTransferRow,
  payments.wiseRow,
  payments.shopifyRow,
  messages.nylasRow,
  messages.telnyxRow,
  messages.brevoRow,
  messages.discordRow,
  messages.smtpRow('example.com'),
  messages.twilioRow,
  messages.slackRow,
  messages.telegramRow,
  messages.postmarkRow,
  messages.sendgridRow,
  messages.mailgunRow,
  messages.sesRow,
  records.quickbooksRow,
  records.xeroRow,
  records.zendeskRow,
  records.mondayRow,
  records.linearRow,
  records.googleCalendarRow,
  records.salesforceRow,
  records.hubspotRow,
  records.notionRow,
  records.githubRow,
  cloud.ec2Row,
  cloud.dynamodbRow,
  cloud.sqsFifoRow,
  cloud.googleComputeRow,
  cloud.googleCloudRow,
  cloud.azureRow,
  cloud.kubernetesRow,
];
