// Ratios with their intervals on a shared logarithmic axis. An interval that leaves the axis is cut
// there, and drawn with an arrow, not as if it ended.
import { finite, log, type Axis } from './axis';

export interface Span {
  value: number;
  low: number | null;
  high: number | null;
}

/** How far beyond the outermost value an interval may widen the axis (a factor). */
const WIDEST = 2.5;

/** Axis for `spans` around 1, with room for a noise floor (a share). */
export function ratioAxis(spans: Span[], floor: number | null, width: number): Axis {
  const values = finite([...spans.map((s) => s.value), 1]).filter((v) => v > 0);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const ends = finite(spans.flatMap((s) => [s.low, s.high])).filter((v) => v > 0);
  const from = Math.max(Math.min(low, ...ends), low / WIDEST);
  const to = Math.min(Math.max(high, ...ends), high * WIDEST);
  const band = 1 + 1.5 * Math.max(floor ?? 0, 0.03);
  const domain: [number, number] = [Math.min(from, 1 / band) / 1.04, Math.max(to, band) * 1.04];
  return log(domain, [4, Math.max(width - 4, 44)], 44);
}

export interface Cut {
  from: number;
  to: number;
  /** Whether the interval goes on beyond the axis. */
  cutLow: boolean;
  cutHigh: boolean;
}

/** Ends of an interval in pixels, cut at the ends of the axis; null without an interval. */
export function cut(span: { low: number | null; high: number | null }, axis: Axis): Cut | null {
  if (span.low === null && span.high === null) {
    return null;
  }
  const [first, last] = axis.scale.domain();
  const low = span.low === null || (axis.log && span.low <= 0) ? -Infinity : span.low;
  const high = span.high ?? Infinity;
  const at = (v: number) => axis.scale(Math.min(Math.max(v, first), last));
  return { from: at(low), to: at(high), cutLow: low < first, cutHigh: high > last };
}

/** Path of an arrow's head at x, y. */
export function arrow(x: number, y: number, to: 'left' | 'right' | 'up' | 'down', size = 4): string {
  const s = size;
  switch (to) {
    case 'left':
      return `M${x},${y}l${s * 1.5},${-s}v${2 * s}Z`;
    case 'right':
      return `M${x},${y}l${-s * 1.5},${-s}v${2 * s}Z`;
    case 'up':
      return `M${x},${y}l${-s},${s * 1.5}h${2 * s}Z`;
    case 'down':
      return `M${x},${y}l${-s},${-s * 1.5}h${2 * s}Z`;
  }
}
