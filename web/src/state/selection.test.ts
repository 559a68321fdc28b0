import { describe, expect, it } from 'vitest';
import type { PairsView, RunView } from '../data/types';
import { baselines, defaultBaseline, defaultSlots, matches, ratiosTo, toggled, validSlots } from './selection';

const view = (tps: (number | null)[], best: number | null = null) =>
  ({
    best,
    treatments: tps.map((mean, index) => ({ index, label: `clients=${index} commit=on`, tps: mean === null ? null : { mean } })),
  }) as unknown as RunView;

describe('drawn treatments', () => {
  it('are all where there are at most eight', () => {
    expect(defaultSlots(view([1, 2, 3]))).toEqual([0, 1, 2]);
  });

  it('are the eight with the highest tps where there are more', () => {
    expect(defaultSlots(view([1, 9, 2, 8, 3, 7, 4, 6, 5, null]))).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it('keep their looks when another goes', () => {
    expect(toggled([0, 1, 2], 1)).toEqual([0, null, 2]);
    expect(toggled([0, null, 2], 7)).toEqual([0, 7, 2]);
    expect(toggled([0, 1], 5)).toEqual([0, 1, 5]);
  });

  it('are never more than eight', () => {
    expect(toggled([0, 1, 2, 3, 4, 5, 6, 7], 8)).toBeNull();
  });

  it('exist, and stand in one slot', () => {
    expect(validSlots([0, 9, 0, null, 1], 3)).toEqual([0, null, null, null, 1]);
  });

  it('are found by all words of their label', () => {
    const [treatment] = view([1]).treatments;
    expect([matches(treatment, 'ON clients=0'), matches(treatment, 'clients=1'), matches(treatment, '')]).toEqual([true, false, true]);
  });
});

describe('ratios to a baseline', () => {
  const pairs: PairsView = { treatments: 3, complete: false, rows: [[0, 1, 2, 1.6, 2.5, 0.01, true], [1, 2, 0.5, 0, null, null, null]] };

  it('are turned round where the pair is stored the other way', () => {
    expect(ratiosTo(pairs, 0).get(1)).toEqual({ value: 2, low: 1.6, high: 2.5, p: 0.01, significant: true });
    expect(ratiosTo(pairs, 1).get(0)).toEqual({ value: 0.5, low: 0.4, high: 0.625, p: 0.01, significant: true });
  });

  it('have an open end where the other direction ends at 0', () => {
    expect(ratiosTo(pairs, 2).get(1)).toMatchObject({ value: 2, low: null, high: null });
  });

  it('are offered for treatments that some pair covers', () => {
    expect([...baselines(pairs)].sort()).toEqual([0, 1, 2]);
    expect(baselines(null).size).toBe(0);
    expect(ratiosTo(pairs, 0).has(2)).toBe(false);
  });

  it('are to the best unless chosen', () => {
    expect([defaultBaseline(view([1, 2], 1)), defaultBaseline(view([null, 2])), defaultBaseline(view([null]))]).toEqual([1, 1, null]);
  });
});
