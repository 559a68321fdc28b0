import { describe, expect, it } from 'vitest';
import type { GapView, RunView, TreatmentView } from '../data/types';
import { inTiers } from '../parts/cautions';
import { badgeLook } from '../parts/badge';
import { bandOf, chosenFamilies, families, grid, lawAt, lawCurve, points, remaining, sweptFactors } from './shape/sweep';
import { bars, groupOf } from './why/waterfall';

function run(levels: Record<string, unknown>[]): RunView {
  return {
    plan: { factors: Object.keys(levels[0]) },
    scaling: [{ treatments: [0, 2], law: { lambda: { value: 100 }, sigma: { value: 0.1 }, kappa: { value: 0.01 }, measured_to: 16 } }],
    courses: [{ factor: 'clients', treatments: [1, 3, 5], curve: [[180, 220], [350, 450], [500, 700]].map((band) => ({ value: 0, band })) }],
    treatments: levels.map((factors, index) => ({
      index, factors, label: '', fsync_per_second: factors.commit === 'on' ? 470 : null,
      tps: { mean: 100 * (index + 1), ci95: [90, 110] }, latency_intervals: [], latency_us: { p99: 5000 },
    })) as unknown as TreatmentView[],
  } as unknown as RunView;
}
const view = run([1, 4, 16].flatMap((clients) => ['on', 'off'].map((commit) => ({ clients, commit }))));

describe('a sweep', () => {
  it('is over a factor with at least three numeric levels', () => {
    expect(sweptFactors(view)).toEqual(['clients']);
    expect(sweptFactors(run([{ a: 1 }, { a: 2 }]))).toEqual([]);
  });

  it('has a curve for each combination of the other factors', () => {
    const all = families(view, 'clients');
    expect(all.map((f) => [f.label, f.brief, f.ceiling])).toEqual([['commit=on', 'on', 470], ['commit=off', 'off', null]]);
    expect(points(all[1], 'clients', 'tps').map((p) => [p.x, p.value])).toEqual([[1, 200], [4, 400], [16, 600]]);
    expect(points(all[0], 'clients', 'p99')[0]).toMatchObject({ value: 5000, ci95: null });
  });

  it('draws curves with ticked treatments first', () => {
    const all = families(view, 'clients');
    expect(chosenFamilies(all, (t) => t === 0, 1)).toEqual([all[0]]);
    expect(chosenFamilies(all, () => false, 1)).toEqual([all[1]]);
  });

  it('has the band of its own course only', () => {
    const [on, off] = families(view, 'clients');
    expect(on.course).toBeNull();
    expect(bandOf(on, 'clients')).toEqual([]);
    expect(bandOf(off, 'clients')).toEqual([{ x: 1, low: 180, high: 220 }, { x: 4, low: 350, high: 450 }, { x: 16, low: 500, high: 700 }]);
  });

  it('evaluates the scalability law no further than was measured', () => {
    const law = families(view, 'clients')[0].law;
    expect(law && lawAt(law, 1)).toBe(100);
    expect(law && lawAt(law, 4)).toBeCloseTo(400 / (1 + 0.3 + 0.12), 9);
    expect(law && lawCurve(law, 1, 4).map(([n]) => Math.round(n))).toEqual([1, 2, 4, 8, 16]);
  });
});

it('a grid has a cell for each treatment at the fixed levels', () => {
  const all = grid(view, 'commit', 'clients', {});
  expect([all.rows, all.columns, all.cells.length]).toEqual([['on', 'off'], [1, 4, 16], 6]);
  expect(all.cells[3]).toMatchObject({ row: 1, column: 1 });
  expect(remaining(view, 'commit', 'clients')).toEqual([]);
});

describe('a gap', () => {
  const part = (what: string, value: number) => ({ what, part: null, a_us: 0, b_us: 0, gap_us: { value, ci95: [value - 1, value + 1] as [number, number] }, share: null, ci95: null });
  const gap: GapView = { a_us: 100, b_us: 130, gap_us: { value: 30, ci95: null }, told_apart: true, parts: [part('x', 50), part('y', -20)] };

  it('goes from A over its parts to B', () => {
    expect(bars(gap, 'A', 'B').map((b) => [b.label, b.from, b.to])).toEqual([['A', 0, 100], ['x', 100, 150], ['y', 150, 130], ['B', 0, 130]]);
    expect(bars(gap, 'A', 'B')[1].ends).toEqual([149, 151]);
  });

  it('sums small parts up', () => {
    const many = { ...gap, parts: Array.from({ length: 14 }, (_, i) => part(`p${i}`, 1)) };
    const all = bars(many, 'A', 'B');
    expect(all.length).toBe(13);
    expect(all[11]).toMatchObject({ label: '4 smaller parts', from: 110, to: 114 });
  });

  it('leads from figures to charts over time', () => {
    expect(['device writes', 'device write latency', 'device queue', 'WAL per transaction', 'unheard of'].map(groupOf)).toEqual([
      'device_operations', 'device_latency', 'device_queue', 'wal', null,
    ]);
  });
});

it('at most five cautions stand open, those that change the conclusion', () => {
  const caution = (tier: 'conclusion' | 'context', i: number) => ({ tier, text: `${tier} ${i}`, kind: 'errors' });
  const all = [caution('context', 0), ...[1, 2, 3, 4, 5, 6].map((i) => caution('conclusion', i))];
  const { open, folded } = inTiers(all);
  expect(open.map((c) => c.text)).toEqual([1, 2, 3, 4, 5].map((i) => `conclusion ${i}`));
  expect(folded.map((c) => c.text)).toEqual(['conclusion 6', 'context 0']);
});

it('verdicts differ by sign and outline', () => {
  expect(['pass', 'FAIL (lost)', 'unknown', 'as planted (lost)', 'bounded-loss'].map((v) => badgeLook(v))).toEqual([
    { sign: '✓', weight: 'plain' },
    { sign: '✕', weight: 'heavy' },
    { sign: '?', weight: 'open' },
    { sign: '●', weight: 'quiet' },
    { sign: '≤', weight: 'plain' },
  ]);
});
