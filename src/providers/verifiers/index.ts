// The door `semel/verifiers`: a `verify` for common services, which asks whether an effect landed.

export { type GitFound, verifyGitPush } from './git.ts';
export {
  type GitHubItem,
  verifyGitHubComment,
  verifyGitHubIssue,
  verifyGitHubPullRequest,
  verifyGitHubRelease,
} from './github.ts';
export {
  type PostmarkMessage,
  type ResendEmail,
  type SendGridMessage,
  verifyPostmarkEmail,
  verifyResendEmail,
  verifySendGridEmail,
} from './mail.ts';
export { type NpmFound, verifyNpmPublish } from './npm.ts';
export type { TokenAccess } from './request.ts';
export { type S3Found, type S3Head, verifyS3Object } from './s3.ts';
export type { AsFound, AsValue, Found, SearchOptions, Verifier } from './search.ts';
export { type SlackMessage, verifySlackMessage } from './slack.ts';
export {
  type StripeObject,
  verifyStripeInvoice,
  verifyStripePaymentIntent,
  verifyStripeRefund,
} from './stripe.ts';
export { type TwilioMessage, verifyTwilioMessage } from './twilio.ts';
export {
  type JiraIssue,
  type LinearItem,
  type NotionPage,
  verifyJiraIssue,
  verifyLinearComment,
  verifyLinearIssue,
  verifyNotionPage,
} from './work.ts';
