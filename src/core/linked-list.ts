// A list whose items are their own links: adding and removing allocates nothing. Not a Set: one that is changed by every call
// would keep the calls that have left it until the next full collection (see key-map.ts).

export interface Link<Item> {
  previous: Item | undefined;
  next: Item | undefined;
}

export class LinkedList<Item extends Link<Item>> {
  first: Item | undefined = undefined;
  #last: Item | undefined = undefined;

  get isEmpty(): boolean {
    return this.first === undefined;
  }

  /** An item is in one list at most. */
  add(item: Item): void {
    item.previous = this.#last;
    if (this.#last === undefined) this.first = item;
    else this.#last.next = item;
    this.#last = item;
  }

  remove(item: Item): void {
    if (item.previous === undefined) this.first = item.next;
    else item.previous.next = item.next;
    if (item.next === undefined) this.#last = item.previous;
    else item.next.previous = item.previous;
    // A removed link that V8 has promoted would keep its young neighbours alive, and they theirs, with all of their calls.
    item.previous = undefined;
    item.next = undefined;
  }

  *[Symbol.iterator](): Generator<Item, void> {
    for (let item = this.first; item !== undefined; item = item.next) yield item;
  }
}
