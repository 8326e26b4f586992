// Options of `semel store`.

export interface StoreValues {
  readonly store: string | undefined;
  readonly namespace: string | undefined;
  readonly json: boolean | undefined;
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly 'dry-run': boolean | undefined;
  readonly unseal: boolean | undefined;
  readonly note: string | undefined;
  readonly yes: boolean | undefined;
  readonly 'nothing-since': boolean | undefined;
}
