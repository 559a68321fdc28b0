// Which treatments are drawn, in which look, and what they are compared to. Pure.
import type { PairsView, RunView, TreatmentView } from '../data/types';
import { MOST } from '../palette';

/** Ratio of a treatment's tps to the baseline's. */
export interface Ratio {
  value: number;
  low: number | null;
  high: number | null;
  /** p-value when all pairs of the run are judged together. */
  p: number | null;
  significant: boolean | null;
}

/** Treatments that are drawn unless the reader chose others: all, or the eight with the highest tps. */
export function defaultSlots(view: RunView): (number | null)[] {
  const { treatments } = view;
  if (treatments.length <= MOST) {
    return treatments.map((t) => t.index);
  }
  return [...treatments]
    .sort((a, b) => (b.tps?.mean ?? -1) - (a.tps?.mean ?? -1))
    .slice(0, MOST)
    .map((t) => t.index)
    .sort((a, b) => a - b);
}

/** Slots without treatments that the run lacks, or that stand in two. */
export function validSlots(slots: (number | null)[], treatments: number): (number | null)[] {
  return slots.map((t, i) => (t !== null && t < treatments && slots.indexOf(t) === i ? t : null));
}

/** Draws a treatment, or draws it no more. The others keep their looks. Null: no slot is free. */
export function toggled(slots: (number | null)[], treatment: number): (number | null)[] | null {
  const at = slots.indexOf(treatment);
  if (at >= 0) {
    return slots.map((t, i) => (i === at ? null : t));
  }
  const free = slots.indexOf(null);
  if (free >= 0) {
    return slots.map((t, i) => (i === free ? treatment : t));
  }
  return slots.length < MOST ? [...slots, treatment] : null;
}

/** Treatment that others are compared to unless the reader chose one: the best, else the first. */
export function defaultBaseline(view: RunView): number | null {
  return view.best ?? view.treatments.find((t) => t.tps)?.index ?? null;
}

/** Treatments that some pair covers, and that can therefore be a baseline. */
export function baselines(pairs: PairsView | null): Set<number> {
  return new Set((pairs?.rows ?? []).flatMap(([a, b]) => [a, b]));
}

function inverse(value: number | null): number | null {
  return value !== null && value > 0 ? 1 / value : null;
}

/** Ratios of all treatments to `baseline`, by index. The pairs have each in one direction only. */
export function ratiosTo(pairs: PairsView | null, baseline: number | null): Map<number, Ratio> {
  const out = new Map<number, Ratio>();
  for (const [a, b, value, low, high, p, significant] of pairs?.rows ?? []) {
    if (a === baseline) {
      out.set(b, { value, low, high, p, significant });
    } else if (b === baseline && value > 0) {
      // 1 ÷ an upper end of 0 or none is open.
      out.set(a, { value: 1 / value, low: inverse(high), high: inverse(low), p, significant });
    }
  }
  return out;
}

/** Whether `treatment` has all words of `filter` in its label. */
export function matches(treatment: TreatmentView, filter: string): boolean {
  const label = treatment.label.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => label.includes(word));
}
