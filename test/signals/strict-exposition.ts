// Reads Prometheus's text format 0.0.4 as strictly as its specification allows. Anything else throws.

export interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Exposed {
  readonly types: ReadonlyMap<string, string>;
  readonly series: readonly Series[];
  find(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
}

const sampleLine = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const labelPart = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|$)/;

export function readExposition(text: string): Exposed {
  if (text !== '' && !text.endsWith('\n')) throw new Error('the last line does not end');
  const types = new Map<string, string>();
  const helps = new Set<string>();
  const series: Series[] = [];
  const seen = new Set<string>();
  const closed = new Set<string>();
  let family = '';
  for (const line of text.split('\n').slice(0, -1)) {
    const [, comment, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (comment !== undefined) {
      if (name !== family) {
        if (closed.has(name)) throw new Error(`${name} is not in one group`);
        closed.add(family);
        family = name;
      }
      if (comment === 'HELP' && helps.has(name)) throw new Error(`a second HELP of ${name}`);
      if (comment === 'HELP') helps.add(name);
      if (comment === 'TYPE' && types.has(name)) throw new Error(`a second TYPE of ${name}`);
      if (comment === 'TYPE' && !/^(counter|gauge|histogram)$/.test(rest)) throw new Error(line);
      if (comment === 'TYPE') types.set(name, rest);
      continue;
    }
    const [, sample, labelText = '', value = ''] = sampleLine.exec(line) ?? [];
    if (sample === undefined) throw new Error(`not a sample: ${line}`);
    const base = types.get(family) === 'histogram' ? sample.replace(/_(bucket|sum|count)$/, '') : sample;
    if (base !== family || !types.has(family)) throw new Error(`${sample} is outside of its group`);
    const labels = readLabels(labelText);
    const id = `${sample} ${JSON.stringify(Object.entries(labels).sort())}`;
    if (seen.has(id)) throw new Error(`twice: ${line}`);
    seen.add(id);
    const number = value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value);
    if (Number.isNaN(number)) throw new Error(`not a number: ${line}`);
    if (types.get(family) !== 'gauge' && number < 0) throw new Error(`below zero: ${line}`);
    series.push({ name: sample, labels, value: number });
  }
  for (const name of types.keys()) if (!helps.has(name)) throw new Error(`${name} has no HELP`);
  checkHistograms(types, series);
  const matches = (labels: Series['labels'], wanted: Series['labels']) =>
    Object.entries(wanted).every(([name, value]) => labels[name] === value);
  return {
    types,
    series,
    find: (name, labels = {}) =>
      series.find((each) => each.name === name && matches(each.labels, labels))?.value,
  };
}

function readLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (let rest = text; rest !== ''; ) {
    const [whole, name, value] = labelPart.exec(rest) ?? [];
    if (whole === undefined || name === undefined || name in labels) throw new Error(`labels: ${text}`);
    labels[name] = (value as string).replace(/\\(.)/g, (_, each) => (each === 'n' ? '\n' : each));
    rest = rest.slice(whole.length);
  }
  return labels;
}

function checkHistograms(types: ReadonlyMap<string, string>, series: readonly Series[]): void {
  for (const [family] of [...types].filter(([, type]) => type === 'histogram')) {
    const groups = Map.groupBy(
      series.filter(({ name }) => name === `${family}_bucket`),
      ({ labels: { le: _, ...labels } }) => JSON.stringify(labels),
    );
    for (const [id, found] of groups) {
      const bounds = found.map(({ labels }) =>
        labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le),
      );
      const rises = (values: readonly number[]) =>
        values.every((value, n) => n === 0 || value >= (values[n - 1] as number));
      if (!rises(bounds) || bounds.at(-1) !== Number.POSITIVE_INFINITY) throw new Error(`${family}: bounds`);
      if (!rises(found.map(({ value }) => value))) throw new Error(`${family}: not cumulative`);
      const count = series.find(
        ({ name, labels }) => name === `${family}_count` && JSON.stringify(labels) === id,
      );
      if (count?.value !== found.at(-1)?.value) throw new Error(`${family}: count`);
    }
  }
}
