// The address of a store as it may be shown, logged and written into another ledger: without its secrets.

export function shownAddress(address: string): string {
  return address
    .replace(/^([a-z][a-z0-9+.-]*:\/\/[^/?#:@]*):[^/?#]*@/i, '$1@')
    .replace(/([?&])(?:password|sslpassword)=[^&#]*(&?)/gi, (_, before: string, after: string) =>
      after === '' ? '' : before,
    );
}

/** What leads to the same ledger again: some parameters are ours, and were taken out of the URL before it was used. */
export function fullAddress(
  url: string | undefined,
  ours: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (url === undefined) return undefined;
  const said = Object.entries(ours).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  if (said.length === 0) return url;
  return `${url}${url.includes('?') ? '&' : '?'}${said.join('&')}`;
}
