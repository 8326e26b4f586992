// The address of a store as it may be shown, logged and written into another ledger: without its secrets.

export function shownAddress(address: string): string {
  return address
    .replace(/^([a-z][a-z0-9+.-]*:\/\/[^/?#:@]*):[^/?#]*@/i, '$1@')
    .replace(/([?&])(?:password|sslpassword)=[^&#]*(&?)/gi, (_, before: string, after: string) =>
      after === '' ? '' : before,
    );
}
