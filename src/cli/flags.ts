// The kinds of options.

export function text(value: string, help: string, short?: string) {
  return { type: 'string', value, help, ...shortOf(short) } as const;
}

/** Repeatable. */
export function texts(value: string, help: string) {
  return { type: 'string', multiple: true, value, help } as const;
}

export function choice<const Choice extends string>(choices: readonly Choice[], help: string) {
  return { type: 'string', choices, help } as const;
}

/** One of the words, or a duration. */
export function choiceOrDuration<const Choice extends string>(choices: readonly Choice[], help: string) {
  return { type: 'string', choices, orDuration: true, help } as const;
}

export function toggle(help: string, short?: string) {
  return { type: 'boolean', help, ...shortOf(short) } as const;
}

function shortOf(short: string | undefined) {
  return short === undefined ? {} : { short };
}
