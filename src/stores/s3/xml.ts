// The little XML that S3 answers with: flat lists and errors, without attributes that matter.

import { type AwsAnswer, AwsError } from '../../store/aws/index.ts';

export function readTag(xml: string, tag: string): string | undefined {
  return readTags(xml, tag)[0];
}

export function readTags(xml: string, tag: string): readonly string[] {
  const found: string[] = [];
  const [open, close] = [`<${tag}>`, `</${tag}>`];
  for (let from = 0; ; ) {
    const start = xml.indexOf(open, from);
    const end = start < 0 ? -1 : xml.indexOf(close, start);
    if (end < 0) return found;
    found.push(unescapeXml(xml.slice(start + open.length, end)));
    from = end + close.length;
  }
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function unescapeXml(text: string): string {
  // The content of a tag with others inside is read again, tag by tag.
  if (text.includes('<')) return text;
  return text.replace(/&(#x?[0-9a-f]+|\w+);/gi, (whole, name: string) => {
    if (!name.startsWith('#')) return entities[name] ?? whole;
    const isHex = name[1] === 'x' || name[1] === 'X';
    return String.fromCodePoint(Number.parseInt(name.slice(isHex ? 2 : 1), isHex ? 16 : 10));
  });
}

export function parseError({ status, text, redact }: AwsAnswer): AwsError {
  const code = redact(readTag(text, 'Code') ?? `HTTP ${status}`);
  return new AwsError(code, status, redact(readTag(text, 'Message') ?? ''));
}
