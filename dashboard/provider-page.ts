// Where a person looks at what a provider's id names. Only hosts that are listed here: an id can be any text that a target or a
// tool gave, and a link to anywhere would lead the person on call there.

export interface ProviderPage {
  readonly title: string;
  readonly url: string;
}

/** Ids of Stripe say what they are; a search finds those that have no page of their own. */
const stripeId = /^(?:ch|cs|cus|du|in|pi|po|py|pyr|re|sub|tr)_(?:(?:test|live)_)?[A-Za-z0-9]{8,255}$/;

const hosts: Readonly<Record<string, string>> = {
  'dashboard.stripe.com': 'Stripe',
  'github.com': 'GitHub',
  'linear.app': 'Linear',
  'www.notion.so': 'Notion',
};

export function findProviderPage(remoteRef: string | undefined): ProviderPage | undefined {
  if (remoteRef === undefined) return undefined;
  if (stripeId.test(remoteRef))
    return { title: 'Stripe', url: `https://dashboard.stripe.com/search?query=${remoteRef}` };
  const url = URL.canParse(remoteRef) ? new URL(remoteRef) : undefined;
  if (url?.protocol !== 'https:' || url.username !== '' || url.port !== '') return undefined;
  const title = Object.hasOwn(hosts, url.hostname) ? hosts[url.hostname] : undefined;
  return title === undefined ? undefined : { title, url: url.href };
}
