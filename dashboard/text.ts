// Strangers' text as a person can trust it, and times as people say them.

/** Control characters, and those that change the order or hide what is there, become visible. */
export function visible(text: string): string {
  return text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu,
    (sign) => `‹U+${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}›`,
  );
}

export function cut(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max)}…`;
}

export function oneLine(value: unknown, max = 160): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(hideSecrets(value)) ?? 'undefined');
  return visible(cut(text.replace(/\s+/g, ' '), max));
}

/** Host and process, without the mark by which semel can prove that the process is dead. */
export function shownOwner(owner: string): string {
  return owner.replace(/~[0-9a-f]{12}(\.alone)?$|#[0-9a-f]{20}$/, '');
}

export const secretName: RegExp =
  /pass(word|phrase)?$|secret|token$|authorization|api[-_]?key|credential|cvc|card_?number/i;

function hideSecrets(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null || depth > 6) return value;
  if (Array.isArray(value)) return value.slice(0, 50).map((each) => hideSecrets(each, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name,
      secretName.test(name) && each !== null ? '•••' : hideSecrets(each, depth + 1),
    ]),
  );
}

const units = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
] as const;

export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`;
  const parts: string[] = [];
  let left = ms;
  for (const [size, name] of units) {
    const count = Math.floor(left / size);
    if (count > 0) parts.push(`${count}${name}`);
    left -= count * size;
    if (parts.length === 2 || (parts.length === 1 && size <= 60_000)) break;
  }
  return parts.join(' ');
}

export function ago(at: string | number | undefined, now = Date.now()): string {
  if (at === undefined) return '';
  const ms = now - new Date(at).getTime();
  return ms < 0 ? `in ${duration(-ms)}` : `${duration(ms)} ago`;
}

export function clock(at: string | number): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return '—';
  const two = (n: number) => String(n).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function many(count: number, one: string, more = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : more}`;
}

/** For a shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${visible(text).replaceAll("'", `'\\''`)}'`;
}
