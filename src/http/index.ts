// `semel/http`: what comes in over HTTP. Webhooks, executed once per event; and Idempotency-Key for an API of one's own.

export { idempotentExpress } from './api/express.ts';
export {
  type FastifyExchange,
  type FastifyReply,
  type IdempotentRoute,
  idempotentFastify,
} from './api/fastify.ts';
export { type HonoContext, idempotent, idempotentHono, idempotentNext } from './api/idempotent.ts';
export type { ContextFor, IdempotentOptions, KeyedRequest } from './api/options.ts';
export { type FastifyReplyLike, type FastifyRequestLike, toFastify, toNode } from './node.ts';
export type { NodeRequest } from './node-request.ts';
export type { ReceiverTerms } from './receiver.ts';
export { type GitHubEvent, githubEvents } from './webhooks/github.ts';
export { type ReceiveOptions, receive } from './webhooks/receive.ts';
export { type ShopifyEvent, shopifyEvents } from './webhooks/shopify.ts';
export { type SlackOptions, slackEvents } from './webhooks/slack.ts';
export type { Delivery, Secrets, WebhookSource } from './webhooks/source.ts';
export { type StandardWebhooksOptions, standardWebhooks } from './webhooks/standard.ts';
export { type StripeOptions, stripeEvents } from './webhooks/stripe.ts';
