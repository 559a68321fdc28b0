// Ratios with their intervals on one log axis.

export interface ForestRow {
  label: string;
  value: number | null;
  ci95: [number, number] | null;
  /** Verdict in a few words. */
  words?: string;
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
  const ends = rows.flatMap((row) => row.ci95 ?? []).filter(positive);
  const from = Math.max(low / BEYOND, Math.min(low, ...ends));
  const to = Math.min(high * BEYOND, Math.max(high, ...ends));
  return [Math.min(from, 1 / 1.1) / 1.02, Math.max(to, 1.1) * 1.02];
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
