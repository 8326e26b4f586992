// A bounded number of places for what costs something while it lasts. No namespace gets more than half of them: one that asks a
// thousand times, or for what takes long, must not keep the others out.

export interface Places {
  /** Whether this namespace got one; if so, call `leave` once. */
  take(namespace: string): boolean;
  leave(namespace: string): void;
}

export function createPlaces(count: number): Places {
  const most = Math.ceil(count / 2);
  let taken = 0;
  const takenBy = new Map<string, number>();

  function add(namespace: string, more: 1 | -1): void {
    taken += more;
    const its = (takenBy.get(namespace) ?? 0) + more;
    if (its === 0) takenBy.delete(namespace);
    else takenBy.set(namespace, its);
  }

  return {
    take(namespace) {
      if (taken >= count || (takenBy.get(namespace) ?? 0) >= most) return false;
      add(namespace, 1);
      return true;
    },
    leave: (namespace) => add(namespace, -1),
  };
}
