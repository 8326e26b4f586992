// The door `semel/providers`: what outside services honour, as a `Provider` for a contract and as rows to read.

import type { Provider } from '../core/contract/provider.ts';
import {
  azureRow,
  dynamodbRow,
  ec2Row,
  googleCloudRow,
  googleComputeRow,
  kubernetesRow,
  sqsFifoRow,
} from './cloud.ts';
import {
  brevoRow,
  discordRow,
  mailgunRow,
  nylasRow,
  postmarkRow,
  sendgridRow,
  sesRow,
  slackRow,
  smtpRow,
  telegramRow,
  telnyxRow,
  twilioRow,
} from './messages.ts';
import { openaiRow } from './openai.ts';
import {
  adyenRow,
  braintreeRow,
  checkoutRow,
  coinbaseRow,
  paypalOrdersRow,
  paypalPaymentsRow,
  paypalPayoutsRow,
  plaidTransferRow,
  plaidWalletRow,
  shopifyRow,
  squareRow,
  wiseRow,
} from './payments.ts';
import {
  githubRow,
  googleCalendarRow,
  hubspotRow,
  linearRow,
  mondayRow,
  notionRow,
  quickbooksRow,
  salesforceRow,
  xeroRow,
  zendeskRow,
} from './records.ts';
import { resendRow } from './resend.ts';
import type { ProviderRow } from './row.ts';
import { stripeRow, stripeV2Row } from './stripe.ts';

export type { Answer } from './answer.ts';
export { defineRow, type KeyAnswer, type KeyPlace, type ProviderRow, type RowFacts } from './row.ts';

export const stripe: Provider = stripeRow.provider;
export const stripeV2: Provider = stripeV2Row.provider;
export const openai: Provider = openaiRow.provider;
export const resend: Provider = resendRow.provider;
export const square: Provider = squareRow.provider;
export const paypalOrders: Provider = paypalOrdersRow.provider;
export const paypalPayments: Provider = paypalPaymentsRow.provider;
export const paypalPayouts: Provider = paypalPayoutsRow.provider;
export const adyen: Provider = adyenRow.provider;
export const braintree: Provider = braintreeRow.provider;
export const checkout: Provider = checkoutRow.provider;
export const coinbase: Provider = coinbaseRow.provider;
export const plaidWallet: Provider = plaidWalletRow.provider;
export const plaidTransfer: Provider = plaidTransferRow.provider;
export const wise: Provider = wiseRow.provider;
export const shopify: Provider = shopifyRow.provider;
export const nylas: Provider = nylasRow.provider;
export const telnyx: Provider = telnyxRow.provider;
export const brevo: Provider = brevoRow.provider;
export const discord: Provider = discordRow.provider;
/** Of one's own domain, which goes behind the @ of the Message-ID. */
export function smtp(domain: string): Provider {
  return smtpRow(domain).provider;
}
export const twilio: Provider = twilioRow.provider;
export const slack: Provider = slackRow.provider;
export const telegram: Provider = telegramRow.provider;
export const postmark: Provider = postmarkRow.provider;
export const sendgrid: Provider = sendgridRow.provider;
export const mailgun: Provider = mailgunRow.provider;
export const ses: Provider = sesRow.provider;
export const quickbooks: Provider = quickbooksRow.provider;
export const xero: Provider = xeroRow.provider;
export const zendesk: Provider = zendeskRow.provider;
export const monday: Provider = mondayRow.provider;
export const linear: Provider = linearRow.provider;
export const googleCalendar: Provider = googleCalendarRow.provider;
export const salesforce: Provider = salesforceRow.provider;
export const hubspot: Provider = hubspotRow.provider;
export const notion: Provider = notionRow.provider;
export const github: Provider = githubRow.provider;
export const ec2: Provider = ec2Row.provider;
export const dynamodb: Provider = dynamodbRow.provider;
export const sqsFifo: Provider = sqsFifoRow.provider;
export const googleCompute: Provider = googleComputeRow.provider;
export const googleCloud: Provider = googleCloudRow.provider;
export const azure: Provider = azureRow.provider;
export const kubernetes: Provider = kubernetesRow.provider;

/** Every row, in the order of the documentation. */
export const providers: readonly ProviderRow[] = [
  stripeRow,
  stripeV2Row,
  openaiRow,
  resendRow,
  squareRow,
  paypalOrdersRow,
  paypalPaymentsRow,
  paypalPayoutsRow,
  adyenRow,
  braintreeRow,
  checkoutRow,
  coinbaseRow,
  plaidWalletRow,
  plaidTransferRow,
  wiseRow,
  shopifyRow,
  nylasRow,
  telnyxRow,
  brevoRow,
  discordRow,
  smtpRow('example.com'),
  twilioRow,
  slackRow,
  telegramRow,
  postmarkRow,
  sendgridRow,
  mailgunRow,
  sesRow,
  quickbooksRow,
  xeroRow,
  zendeskRow,
  mondayRow,
  linearRow,
  googleCalendarRow,
  salesforceRow,
  hubspotRow,
  notionRow,
  githubRow,
  ec2Row,
  dynamodbRow,
  sqsFifoRow,
  googleComputeRow,
  googleCloudRow,
  azureRow,
  kubernetesRow,
];
