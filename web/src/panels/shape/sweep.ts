// Treatments as curves over a numeric factor, and as a grid over two factors. Pure.
import type { CourseView, Interval, Levels, RunView, Scaling, TreatmentView } from '../../data/types';

export interface Point {
  x: number;
  treatment: number;
  value: number;
  ci95: Interval | null;
}

/** Treatments that differ in the swept factor only. */
export interface Family {
  /** Levels of the other factors in one line; empty where there are none. */
  label: string;
  /** The levels alone, for the end of a curve. */
  brief: string;
  treatments: TreatmentView[];
  /** Flushes per second that one writer gets; null where commits do not wait or differ. */
  ceiling: number | null;
  law: Scaling | null;
  /** Where it rises, falls and is highest; null where that is not judged. */
  course: CourseView | null;
}

export type Measure = 'tps' | 'p99';

function levels(view: RunView, factor: string): Set<Levels[string]> {
  return new Set(view.treatments.map((t) => t.factors[factor]));
}

/** Factors with at least three numeric levels: `clients` first, then those with most levels. */
export function sweptFactors(view: RunView): string[] {
  const isNumeric = (factor: string) => [...levels(view, factor)].every((l) => typeof l === 'number');
  const rank = (factor: string) => (factor === 'clients' ? 1000 : 0) + levels(view, factor).size;
  return view.plan.factors
    .filter((factor) => isNumeric(factor) && levels(view, factor).size >= 3)
    .sort((a, b) => rank(b) - rank(a));
}

/** Factors with at least two levels. */
export function variedFactors(view: RunView): string[] {
  return view.plan.factors.filter((factor) => levels(view, factor).size >= 2);
}

function others(t: TreatmentView, without: string[]): [string, Levels[string]][] {
  return Object.entries(t.factors).filter(([name]) => !without.includes(name));
}

export function levelText(level: Levels[string]): string {
  return level === true ? 'on' : level === false ? 'off' : String(level);
}

/** Treatments by what they share beside `factor`, in the plan's order. */
export function families(view: RunView, factor: string): Family[] {
  const groups = new Map<string, TreatmentView[]>();
  for (const t of view.treatments) {
    const key = JSON.stringify(others(t, [factor]));
    groups.set(key, [...(groups.get(key) ?? []), t]);
  }
  return [...groups.values()].map((group) => {
    const ceilings = group.map((t) => t.fsync_per_second);
    const members = new Set(group.map((t) => t.index));
    const isWithin = (treatments: number[]) => treatments.every((t) => members.has(t));
    const law =
      factor === 'clients' ? view.scaling.find((s) => isWithin(s.treatments))?.law : null;
    return {
      brief: others(group[0], [factor])
        .map(([, level]) => levelText(level))
        .join(' · '),
      label: others(group[0], [factor])
        .map(([name, level]) => `${name}=${levelText(level)}`)
        .join(' '),
      treatments: [...group].sort((a, b) => Number(a.factors[factor]) - Number(b.factors[factor])),
      ceiling: ceilings.every((c) => c !== null && c === ceilings[0]) ? ceilings[0] : null,
      law: law ?? null,
      course: view.courses.find((c) => c.factor === factor && isWithin(c.treatments)) ?? null,
    };
  });
}

/** Families to draw, at most `most`: those with drawn treatments first, then those with the highest tps. */
export function chosenFamilies(all: Family[], isDrawn: (treatment: number) => boolean, most: number): Family[] {
  const drawn = (f: Family) => f.treatments.filter((t) => isDrawn(t.index)).length;
  const peak = (f: Family) => Math.max(0, ...f.treatments.map((t) => t.tps?.mean ?? 0));
  const best = [...all].sort((a, b) => drawn(b) - drawn(a) || peak(b) - peak(a)).slice(0, most);
  return all.filter((family) => best.includes(family));
}

/** Points of a family's curve; treatments without the measure have none. */
export function points(family: Family, factor: string, measure: Measure): Point[] {
  return family.treatments.flatMap((t) => {
    const x = Number(t.factors[factor]);
    if (measure === 'tps') {
      return t.tps ? [{ x, treatment: t.index, value: t.tps.mean, ci95: t.tps.ci95 }] : [];
    }
    const over = t.latency_intervals?.find((l) => l.percentile === 'p99');
    const us = over?.us ?? t.latency_us?.p99;
    return us == null ? [] : [{ x, treatment: t.index, value: us, ci95: over?.ci95 ?? null }];
  });
}

/** Throughput at `n` clients by the Universal Scalability Law. */
export function lawAt(law: Scaling, n: number): number {
  const [lambda, sigma, kappa] = [law.lambda.value, law.sigma.value, law.kappa.value];
  return (lambda * n) / (1 + sigma * (n - 1) + kappa * n * (n - 1));
}

/** The law's curve, as far as was measured. */
export function lawCurve(law: Scaling, from: number, steps = 48): [number, number][] {
  const to = Math.max(law.measured_to, from);
  return Array.from({ length: steps + 1 }, (_, i) => {
    const n = from * (to / from) ** (i / steps);
    return [n, lawAt(law, n)];
  }).filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y)) as [number, number][];
}

/** Band of the fitted curve at each measured level. */
export function bandOf(family: Family, factor: string): { x: number; low: number; high: number }[] {
  const { treatments, curve } = family.course ?? { treatments: [], curve: [] };
  const levels = new Map(family.treatments.map((t) => [t.index, Number(t.factors[factor])]));
  return curve.map(({ band: [low, high] }, i) => ({ x: levels.get(treatments[i]) ?? NaN, low, high }));
}

export interface Cell {
  row: number;
  column: number;
  treatment: TreatmentView;
}

/** Grid of two factors, at `fixed` levels of the others. */
export function grid(view: RunView, row: string, column: string, fixed: Levels) {
  const rows = [...levels(view, row)];
  const columns = [...levels(view, column)];
  const cells: Cell[] = view.treatments
    .filter((t) => others(t, [row, column]).every(([name, level]) => fixed[name] === level))
    .map((t) => ({
      row: rows.indexOf(t.factors[row]),
      column: columns.indexOf(t.factors[column]),
      treatment: t,
    }));
  return { rows, columns, cells };
}

/** Levels of the factors beside two, by name. */
export function remaining(view: RunView, row: string, column: string): [string, Levels[string][]][] {
  return variedFactors(view)
    .filter((name) => name !== row && name !== column)
    .map((name) => [name, [...levels(view, name)]]);
}
