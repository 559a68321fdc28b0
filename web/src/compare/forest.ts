// Ratios with their intervals on one log axis.

export interface ForestRow {
  label: string;
  value: number | null;
  ci95: [number, number] | null;
  /** Interval by the trials of these two runs alone, which lacks the spread between runs. */
  within?: [number, number] | null;
  /** Whether the difference is significant; null: not judged. */
  significant?: boolean | null;
}

/** Part of an interval that lies on the axis, and on which sides it goes on. */
export interface Clipped {
  low: number;
  high: number;
  cutLow: boolean;
  cutHigh: boolean;
}

const positive = (value: number | null | undefined): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value > 0;

/** How far (a factor) an axis reaches beyond the outermost ratio; intervals beyond are cut. */
const BEYOND = 4;

/** Ends of the axis: all ratios and 1, and intervals as far as they do not dwarf the ratios. */
export function domain(rows: ForestRow[]): [number, number] {
  const values = [1, ...rows.map((row) => row.value).filter(positive)];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const ends = rows.flatMap((row) => row.ci95 ?? row.within ?? []).filter(positive);
  const from = Math.max(low / BEYOND, Math.min(low, ...ends));
  const to = Math.min(high * BEYOND, Math.max(high, ...ends));
  return [Math.min(from, 1 / 1.1) / 1.02, Math.max(to, 1.1) * 1.02];
}

/** Ticks of a narrow axis, which holds no two powers of ten. */
export function nearTicks([from, to]: [number, number], room: number): number[] {
  const steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
  const step = steps.find((size) => (to - from) / size <= Math.max(2, room)) ?? 1;
  const first = Math.ceil(from / step - 1e-9);
  const count = Math.floor(to / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, i) => Number(((first + i) * step).toFixed(2)));
}

/** Cuts an interval at the ends of the axis. */
export function clipped([low, high]: [number, number], [from, to]: [number, number]): Clipped {
  const cutLow = !(low >= from);
  const cutHigh = !(high <= to);
  return {
    low: cutLow ? from : Math.min(low, to),
    high: cutHigh ? to : Math.max(high, from),
    cutLow,
    cutHigh,
  };
}
