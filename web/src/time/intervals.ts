// Figures of an interval of a trial, from the buckets that the page holds. Nothing is estimated here
// but what a bucket's width hides: a quantile lies within its bucket.
import type { Chart, Heat, Series, StatementView, TrialDetail } from '../data/types';

export type Range = [number, number];

/** Ends of the buckets that begin at `t`; the last is as long as the one before it. */
export function ends(t: number[], lengths?: number[]): number[] {
  return t.map((begin, i) => {
    const next = t[i + 1];
    const own = lengths?.[i];
    return next ?? begin + (own ?? (i > 0 ? begin - t[i - 1] : 1));
  });
}

/** Length of the trial's window. */
export function windowEnd(series: Series): number {
  const last = series.t_s.length - 1;
  return last < 0 ? 0 : series.t_s[last] + (series.length_s[last] ?? 1);
}

/** Indices of the buckets whose middle lies in `range`, or, turned round, outside of it. */
export function within(t: number[], to: number[], range: Range | null, rest = false): number[] {
  return t
    .map((_, i) => i)
    .filter((i) => {
      const middle = (t[i] + to[i]) / 2;
      const is = range === null || (middle >= range[0] && middle < range[1]);
      return is !== rest;
    });
}

/** Moves the ends of `range` to the nearest edges of buckets; null for nothing. */
export function snapped(range: Range, series: Series): Range | null {
  const edges = [...series.t_s, windowEnd(series)];
  const nearest = (v: number) =>
    edges.reduce((best, edge) => (Math.abs(edge - v) < Math.abs(best - v) ? edge : best), edges[0]);
  const [from, to] = [nearest(range[0]), nearest(range[1])];
  return from < to ? [from, to] : null;
}

/** Counts of a latency histogram over time buckets, by latency bucket. */
export function histogram(heat: Heat, times: Set<number>): Map<number, number> {
  const out = new Map<number, number>();
  for (let i = 0; i + 2 < heat.rows.length; i += 3) {
    const [t, bucket, count] = [heat.rows[i], heat.rows[i + 1], heat.rows[i + 2]];
    if (times.has(t)) {
      out.set(bucket, (out.get(bucket) ?? 0) + count);
    }
  }
  return out;
}

/** Quantile of a histogram (microseconds), interpolated within its bucket on a logarithmic scale. */
export function quantile(counts: Map<number, number>, heat: Heat, q: number): number | null {
  const buckets = [...counts.keys()].sort((a, b) => a - b);
  const total = buckets.reduce((sum, b) => sum + (counts.get(b) ?? 0), 0);
  if (total === 0) {
    return null;
  }
  let below = 0;
  for (const bucket of buckets) {
    const count = counts.get(bucket) ?? 0;
    if (below + count >= q * total) {
      const share = (q * total - below) / count;
      return heat.base_us * 2 ** ((bucket + share) / heat.per_octave);
    }
    below += count;
  }
  return null;
}

/** How far a quantile may lie from the truth: half a bucket (a share). */
export function quantileError(heat: Heat): number {
  return 2 ** (1 / heat.per_octave / 2) - 1;
}

/** Title of the figures of statements. */
export const STATEMENTS = 'Mean latency by statement';

export interface Figure {
  /** Title of the chart that shows it. */
  group: string;
  name: string;
  unit: string;
  interval: number | null;
  rest: number | null;
  whole: number | null;
}

function sum(values: number[], at: number[]): number {
  return at.reduce((total, i) => total + (values[i] ?? 0), 0);
}

/** Mean of `values` over buckets, weighted by `weights`; null where none is known. */
function mean(values: (number | null)[], weights: number[], at: number[]): number | null {
  let [total, weight] = [0, 0];
  for (const i of at) {
    const v = values[i];
    if (typeof v === 'number') {
      total += v * weights[i];
      weight += weights[i];
    }
  }
  return weight > 0 ? total / weight : null;
}

/** Buckets of an interval, of the rest of the window, and of the whole. */
function partsOf({ t_s, length_s }: Series, range: Range): number[][] {
  const to = ends(t_s, length_s);
  return [within(t_s, to, range), within(t_s, to, range, true), within(t_s, to, null)];
}

type Three = (at: number[]) => number | null;

function loadFigures(detail: TrialDetail, range: Range): Figure[] {
  const { series, heat } = detail;
  const parts = partsOf(series, range);
  const figure = (name: string, unit: string, of: Three): Figure => {
    const [interval, rest, whole] = parts.map(of);
    return { group: 'Load', name, unit, interval, rest, whole };
  };
  const tps: Three = (at) => {
    const length = sum(series.length_s, at);
    return length > 0 ? sum(series.transactions, at) / length : null;
  };
  const share: Three = (at) => {
    const [good, bad] = [sum(series.transactions, at), sum(series.failed, at)];
    return good + bad > 0 ? (100 * bad) / (good + bad) : null;
  };
  const out = [figure('tps', '1/s', tps)];
  if (series.failed.some((n) => n > 0)) {
    out.push(figure('failed transactions', '%', share));
  }
  if (heat) {
    const percentile = (q: number): Three => (at) => {
      const us = quantile(histogram(heat, new Set(at)), heat, q);
      return us === null ? null : us / 1000;
    };
    out.push(...[50, 95, 99].map((p) => figure(`p${p}`, 'ms', percentile(p / 100))));
  }
  return out;
}

function tableFigures(table: Chart, range: Range, begin: number, end: number): Figure[] {
  const to = ends(table.t_s);
  const lengths = table.t_s.map((t, i) => to[i] - t);
  const own = within(table.t_s, to, [begin, end]);
  const inside = within(table.t_s, to, range);
  const outside = own.filter((i) => !inside.includes(i));
  return table.lines.map((line) => ({
    group: table.title,
    name: line.name,
    unit: table.unit,
    interval: mean(line.mean, lengths, inside),
    rest: mean(line.mean, lengths, outside),
    whole: mean(line.mean, lengths, own),
  }));
}

/** Name of a statement: its text, and its place where another has the same text. */
function nameOf(statement: StatementView, all: StatementView[]): string {
  const { text, script, line } = statement;
  return all.some((other) => other !== statement && other.text === text) ? `${text} (${script}:${line})` : text;
}

/** Mean latency of each statement. Empty for trials of which it is not known by the second. */
function statementFigures(detail: TrialDetail, statements: StatementView[], range: Range): Figure[] {
  const parts = partsOf(detail.series, range);
  return (detail.statements ?? []).slice(0, statements.length).map(({ executions, latency_us }, i) => {
    const [interval, rest, whole] = parts.map((at) => {
      const us = mean(latency_us, executions, at);
      return us === null ? null : us / 1000;
    });
    return { group: STATEMENTS, name: nameOf(statements[i], statements), unit: 'ms', interval, rest, whole };
  });
}

/** Figures of an interval, of the rest of the window, and of the whole. `statements` are the trial's. */
export function figures(detail: TrialDetail, statements: StatementView[], range: Range): Figure[] {
  const end = windowEnd(detail.series);
  const tables = detail.telemetry.filter((table) => !table.detail);
  const of = statementFigures(detail, statements, range);
  return [...loadFigures(detail, range), ...of, ...tables.flatMap((table) => tableFigures(table, range, 0, end))];
}
