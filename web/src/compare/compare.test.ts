import { describe, expect, it } from 'vitest';
import type { CompareView, PairView } from '../data/types';
import { clipped, domain, nearTicks } from './forest';
import { forestRows, gateRatios, otherDifferences, pairCells, percentiles, verdictWords } from './rows';

const row = (value: number | null, ci95: [number, number] | null) => ({ label: '', value, ci95 });

describe('the axis of ratios', () => {
  it('holds 1, every ratio and every interval of ordinary width', () => {
    const [from, to] = domain([row(0.8, [0.7, 0.9]), row(1.2, [1.1, 1.3])]);
    expect(from).toBeLessThan(0.7);
    expect(to).toBeGreaterThan(1.3);
  });

  it('is not dwarfed by an interval without end', () => {
    const [from, to] = domain([row(0.5, [0, 1e300]), row(null, null)]);
    expect(from).toBeGreaterThan(0.1);
    expect(to).toBeLessThan(10);
  });

  it('takes absurd ratios', () => {
    const [from, to] = domain([row(Number.NaN, [Number.NaN, Number.NaN]), row(0, [0, 0]), row(-3, [-5, -1])]);
    expect(from).toBeLessThan(1);
    expect(to).toBeGreaterThan(1);
  });

  it('has several ticks where it is narrow', () => {
    expect(nearTicks([0.79, 1.31], 6)).toEqual([0.8, 0.9, 1, 1.1, 1.2, 1.3]);
    expect(nearTicks([0.98, 1.02], 6)).toContain(1);
  });
});

describe('an interval', () => {
  it('that ends on the axis is drawn whole', () => {
    expect(clipped([0.7, 0.9], [0.5, 2])).toEqual({ low: 0.7, high: 0.9, cutLow: false, cutHigh: false });
  });

  it('that goes on beyond the axis is marked as cut, and ends at the axis', () => {
    expect(clipped([0, 5], [0.5, 2])).toEqual({ low: 0.5, high: 2, cutLow: true, cutHigh: true });
    expect(clipped([Number.NaN, 1], [0.5, 2]).cutLow).toBe(true);
  });
});

const pair = {
  label: 'clients=1',
  a: { trials: 3, tps: { mean: 1000 } },
  b: { trials: 3, tps: { mean: 1500 } },
  ratio: { value: 1.5, ci95: [1.2, 1.8], told_apart: true, withheld: null, within_runs: null },
  latency: [{ percentile: 'p50', value: 0.5, ci95: null }],
  generator_limited: false,
} as unknown as PairView;
const view = {
  pairs: [pair],
  gates: [{ gate: 'tps < -3%' }, { gate: 'p50 > +10%' }, { gate: 'tps < -3%' }],
} as unknown as CompareView;

describe('a comparison', () => {
  it('is drawn by the measure that was chosen', () => {
    expect(forestRows(view, 'main')[0]).toMatchObject({ value: 1.5, ci95: [1.2, 1.8], significant: true });
    expect(forestRows(view, 'p50')[0]).toMatchObject({ value: 0.5, ci95: null });
    expect(forestRows(view, 'p99')[0]).toMatchObject({ value: null });
    expect(percentiles(view)).toEqual(['p50']);
  });

  it('shows where the gates of that measure lie', () => {
    expect(gateRatios(view, 'main')).toEqual([0.97]);
    expect(gateRatios(view, 'p50')).toEqual([1.1]);
    expect(gateRatios(view, 'p99')).toEqual([]);
  });

  it('has a row with trials, both tps, ratios and a verdict', () => {
    expect(pairCells(pair)).toEqual([
      'clients=1',
      '3 / 3',
      '1,000',
      '1,500',
      '1.50× (1.20–1.80)',
      '0.500×',
      '–',
      '–',
      'significant',
    ]);
  });

  it('tells a verdict that was withheld from one that was not reached', () => {
    const ratio = { ...pair.ratio, told_apart: null };
    expect(verdictWords({ ...pair, ratio })).toBe('not judged');
    expect(verdictWords({ ...pair, ratio: { ...ratio, withheld: 'undecided across runs' } })).toBe('undecided across runs');
    const equal = { ...pair.ratio, told_apart: false, equivalent: true };
    expect(verdictWords({ ...pair, ratio: equal, generator_limited: true })).toBe('equivalent; generator-limited');
  });
});

it('a difference that the comparison names itself is not listed twice', () => {
  const rows = ['shared_buffers', 'Kernel', 'work_mem'].map((name) => ({ group: 'g', name, a: '1', b: '2' }));
  const unequal = [{ what: 'setting shared_buffers' }, { what: 'kernel' }];
  expect(otherDifferences(rows, { unequal } as unknown as CompareView).map((row) => row.name)).toEqual(['work_mem']);
});
