// Bounds the labels: names come from programs and clients, and each pair of them is a series for good.

export interface Scope {
  readonly namespace: string;
  readonly tool: string;
}

/** What is beyond the limit shares one series. */
export const otherName = 'other';

export const maxTools = 100;
const maxNamespaces = 50;

export interface Scopes {
  of(namespace: string, contract: string): Scope;
}

export function createScopes(): Scopes {
  const namespaces = new Set<string>();
  const known = new Map<string, Scope>();
  return {
    of(name, contract) {
      const tool = toTool(contract);
      const id = `${name}\0${tool}`;
      const found = known.get(id);
      if (found !== undefined) return found;
      const isKnown = namespaces.has(name) || namespaces.size < maxNamespaces;
      if (isKnown) namespaces.add(name);
      const scope = {
        namespace: isKnown ? name : otherName,
        tool: isKnown && known.size < maxTools ? tool : otherName,
      };
      if (known.size < maxTools) known.set(id, scope);
      return scope;
    },
  };
}

/** A step's name may hold anything that a run does; all steps are one tool. */
function toTool(contract: string): string {
  return contract.startsWith('step.') ? 'step' : contract;
}
