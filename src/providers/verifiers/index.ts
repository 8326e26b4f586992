// The door `semel/verifiers`: a `verify` for common services, which asks whether an effect landed.

export {
  type GitHubItem,
  verifyGitHubComment,
  verifyGitHubIssue,
  verifyGitHubPullRequest,
  verifyGitHubRelease,
} from './github.ts';
export type { TokenAccess } from './request.ts';
export type { AsFound, AsValue, Found, SearchOptions, Verifier } from './search.ts';
export { type SlackMessage, verifySlackMessage } from './slack.ts';
export {
  type StripeObject,
  verifyStripeInvoice,
  verifyStripePaymentIntent,
  verifyStripeRefund,
} from './stripe.ts';
