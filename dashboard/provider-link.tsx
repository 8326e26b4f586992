// A link to where a person looks at what a provider's id names.

import { findProviderPage } from './provider-page.ts';

export function ProviderLink({ remoteRef }: { readonly remoteRef: string | undefined }) {
  const page = findProviderPage(remoteRef);
  if (page === undefined) return null;
  return (
    <>
      {' '}
      <a class="provider" href={page.url} target="_blank" rel="noopener noreferrer">
        Open it at {page.title}
      </a>
    </>
  );
}
