// Reads a list page by page.

/** Where a page begins: what comes after that of the page before. */
export interface From {
  readonly after?: string;
}

export async function* pages<Page extends { readonly next: string | undefined }>(
  read: (from: From) => Promise<Page>,
  first?: string,
): AsyncGenerator<Page> {
  for (let after = first; ; ) {
    const page = await read(after === undefined ? {} : { after });
    yield page;
    if (page.next === undefined) return;
    after = page.next;
  }
}

export async function* items<Item>(
  read: (from: From) => Promise<{ readonly items: readonly Item[]; readonly next: string | undefined }>,
): AsyncGenerator<Item> {
  for await (const page of pages(read)) yield* page.items;
}
