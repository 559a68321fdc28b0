// Rows of a comparison, for its chart and its tables.
import type { CompareView, Difference, PairView } from '../data/types';
import { interval, rate, times } from '../format';
import type { ForestRow } from './forest';

/** What a comparison is drawn by: the main measure, or a percentile of latency. */
export type Measure = 'main' | 'p50' | 'p95' | 'p99';

/** Name of a pair on the page. */
export function pairName(pair: PairView): string {
  return pair.label || 'the only treatment';
}

/** Ratios of all pairs. */
export function forestRows(view: CompareView, measure: Measure): ForestRow[] {
  return (view.pairs ?? []).map((pair) => {
    if (measure === 'main') {
      const { value, ci95, told_apart, within_runs } = pair.ratio;
      return { label: pairName(pair), value, ci95, within: within_runs, significant: told_apart };
    }
    const found = (pair.latency ?? []).find((latency) => latency.percentile === measure);
    return { label: pairName(pair), value: found?.value ?? null, ci95: found?.ci95 ?? null, significant: null };
  });
}

/** Percentiles of latency that a pair has a ratio of. */
export function percentiles(view: CompareView): Measure[] {
  const known = new Set((view.pairs ?? []).flatMap((pair) => (pair.latency ?? []).map((l) => l.percentile)));
  return (['p50', 'p95', 'p99'] as const).filter((name) => known.has(name));
}

/** Verdict on a pair in a few words. */
export function verdictWords({ ratio, generator_limited }: PairView): string {
  const limited = generator_limited ? '; generator-limited' : '';
  if (ratio.withheld) {
    return `${ratio.withheld}${limited}`;
  }
  if (ratio.told_apart === null || ratio.told_apart === undefined) {
    return `not judged${limited}`;
  }
  const equivalent = ratio.equivalent ? 'equivalent' : 'no significant difference';
  return `${ratio.told_apart ? 'significant' : equivalent}${limited}`;
}

function ratioText(value: number | null | undefined, ci95: [number, number] | null | undefined): string {
  return ci95 ? `${times(value)} (${interval(ci95)})` : times(value);
}

/** Cells of the table of pairs. */
export function pairCells(pair: PairView): string[] {
  const latency = (name: string) => {
    const found = (pair.latency ?? []).find((l) => l.percentile === name);
    return found ? ratioText(found.value, found.ci95) : '–';
  };
  return [
    pairName(pair),
    `${pair.a.trials} / ${pair.b.trials}`,
    rate(pair.a.tps?.mean),
    rate(pair.b.tps?.mean),
    ratioText(pair.ratio.value, pair.ratio.ci95),
    latency('p50'),
    latency('p95'),
    latency('p99'),
    verdictWords(pair),
  ];
}

/** Ratios at which the gates of a measure lie: `tps < -3%` lies at 0.97. */
export function gateRatios(view: CompareView, measure: Measure): number[] {
  const name = measure === 'main' ? 'tps' : measure;
  const ratios = (view.gates ?? []).flatMap(({ gate }) => {
    const found = /^(\w+)\s*[<>]\s*([+-]?\d+(?:\.\d+)?)%$/.exec(String(gate));
    return found?.[1] === name ? [1 + Number(found[2]) / 100] : [];
  });
  return [...new Set(ratios)];
}

/** Differences that the comparison itself does not name: it names settings as `setting NAME`. */
export function otherDifferences(rows: Difference[], view: CompareView): Difference[] {
  const named = new Set((view.unequal ?? []).map(({ what }) => String(what).replace(/^setting /, '').toLowerCase()));
  return rows.filter((row) => !named.has(String(row.name).toLowerCase()));
}
