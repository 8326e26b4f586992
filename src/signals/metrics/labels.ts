// Bounds the labels: names come from programs and clients, and each pair of them is a series for good.

import { keyMap } from '../../core/key-map.ts';

export interface Scope {
  readonly namespace: string;
  readonly tool: string;
}

/** What is beyond the limit shares one series. */
const otherName = 'other';
/** The sum over namespaces: for no reader that is confined to one, whatever that is called. */
export const otherNamespaces = '(other)';

export const maxTools = 100;
const maxNamespaces = 50;

export interface Scopes {
  /** One object per series: they are counted by it. */
  of(namespace: string, contract: string): Scope;
  /** The label of what belongs to no tool. */
  nameOf(namespace: string): string;
}

export function createScopes(): Scopes {
  const known = keyMap<Scope>();
  const namespaces = new Set<string>();
  /** Scopes for what is beyond the limit: one per known namespace, and one for the rest. */
  const others = new Map<string, Scope>();
  const share = (namespace: string) => {
    const scope = others.get(namespace) ?? { namespace, tool: otherName };
    others.set(namespace, scope);
    return scope;
  };
  /** False: it is beyond the limit. */
  const admit = (namespace: string) => {
    if (!namespaces.has(namespace) && namespaces.size >= maxNamespaces) return false;
    namespaces.add(namespace);
    return true;
  };
  return {
    nameOf: (name) => (admit(name) ? name : otherNamespaces),
    of(name, contract) {
      const tool = toTool(contract);
      const found = known.get(name, tool);
      if (found !== undefined) return found;
      if (!admit(name)) return share(otherNamespaces);
      // A tool may have this name, too.
      if (known.size() >= maxTools || tool === otherName) return share(name);
      const scope = { namespace: name, tool };
      known.set(name, tool, scope);
      return scope;
    },
  };
}

/** A step's name may hold anything that a run does; all steps are one tool. */
function toTool(contract: string): string {
  return contract.startsWith('step.') ? 'step' : contract;
}
