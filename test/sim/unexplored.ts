// Kinds of contract that wait for a fix: each is taken out of this list with the change that lets it be explored.

const waiting = process.env.SIM_UNEXPLORED ?? 'was';

export const unexplored: ReadonlySet<string> = new Set(waiting.split(','));
