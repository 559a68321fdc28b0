// A gap of two treatments as bars from A's mean over the parts to B's. Pure.
import type { GapView, PartView } from '../../data/types';

export interface Bar {
  /** A's or B's mean, or a part between them. */
  kind: 'a' | 'b' | 'part';
  label: string;
  part: PartView | null;
  /** Ends of the bar (microseconds). */
  from: number;
  to: number;
  /** Ends of the part's interval, where the bar would end; none without one. */
  ends: [number, number] | null;
}

/** Parts that are drawn by themselves, at most. The others are summed up. */
const MOST = 10;

/** Bars from top to bottom. */
export function bars(gap: GapView, a: string, b: string): Bar[] {
  const out: Bar[] = [{ kind: 'a', label: a, part: null, from: 0, to: gap.a_us, ends: null }];
  let at = gap.a_us;
  for (const part of gap.parts.slice(0, MOST)) {
    const { value, ci95 } = part.gap_us;
    const ends: [number, number] | null = ci95 ? [at + ci95[0], at + ci95[1]] : null;
    out.push({ kind: 'part', label: part.what, part, from: at, to: at + value, ends });
    at += value;
  }
  const rest = gap.parts.slice(MOST);
  if (rest.length) {
    const value = rest.reduce((sum, part) => sum + part.gap_us.value, 0);
    out.push({ kind: 'part', label: `${rest.length} smaller parts`, part: null, from: at, to: at + value, ends: null });
  }
  out.push({ kind: 'b', label: b, part: null, from: 0, to: gap.b_us, ends: null });
  return out;
}

// Names of the figures of `WhyView`, and the chart over time that shows each.
const GROUPS: [RegExp, string][] = [
  [/latency$/, 'device_latency'],
  [/^device queue/, 'device_queue'],
  [/^device (written|read)$/, 'device_throughput'],
  [/^device/, 'device_operations'],
  [/^(WAL|full-page)/, 'wal'],
  [/load generator/, 'generator_cpu'],
  [/^CPU/, 'cpu'],
];

/** Group of telemetry that shows a figure over time; null where none does. */
export function groupOf(figure: string): string | null {
  return GROUPS.find(([name]) => name.test(figure))?.[1] ?? null;
}
