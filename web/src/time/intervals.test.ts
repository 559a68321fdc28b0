import { describe, expect, it } from 'vitest';
import type { Heat, StatementView, TrialDetail } from '../data/types';
import { ends, figures, histogram, quantile, quantileError, snapped, STATEMENTS, windowEnd, within } from './intervals';

const heat: Heat = { base_us: 1, per_octave: 8, rows: [0, 80, 90, 0, 88, 10, 1, 96, 50, 2, 80, 100] };
const detail: TrialDetail = {
  buckets: 3,
  reduced: false,
  series: {
    t_s: [0, 1, 2],
    length_s: [1, 1, 0.5],
    tps: { mean: [100, 50, 200] },
    transactions: [100, 50, 100],
    failed: [0, 50, 0],
    p50: [1, 1, 1],
    p95: [1, 1, 1],
    p99: [1, 1, 1],
    max: [1, 1, 1],
  },
  heat,
  statements: [
    { executions: [10, 30, 10], latency_us: [1000, 3000, 5000] },
    { executions: [0, 0, 10], latency_us: [null, null, 2000] },
  ],
  telemetry: [
    { group: 'wal', title: 'WAL generated', unit: 'MB/s', stacked: false, detail: false, t_s: [-0.1, 0.9, 1.9], lines: [{ name: 'WAL', mean: [4, null, 8] }] },
    { group: 'arc', title: 'detail', unit: '1/s', stacked: false, detail: true, t_s: [0], lines: [{ name: 'x', mean: [1] }] },
  ],
};

const statement = (text: string, line: number): StatementView => ({ script: 'a.sql', line, text, failed: 0, latency_us: null, first_byte_us: null });
const statements = [statement('SELECT 1;', 1), statement('END;', 2)];

describe('an interval of a trial', () => {
  it('has the mean latency of its statements', () => {
    const of = (all: StatementView[]) => figures(detail, all, [0, 2]).filter((f) => f.group === STATEMENTS);
    expect(of(statements)).toMatchObject([
      { name: 'SELECT 1;', interval: 2.5, rest: 5, whole: 3 },
      { name: 'END;', interval: null, rest: 2, whole: 2 },
    ]);
    expect(of([statement('END;', 1), statement('END;', 2)]).map((f) => f.name)).toEqual(['END; (a.sql:1)', 'END; (a.sql:2)']);
    const earlier = { ...detail, statements: [] };
    expect(figures(earlier, statements, [0, 2]).some((f) => f.group === STATEMENTS)).toBe(false);
  });

  it('holds the buckets whose middle lies in it', () => {
    expect(ends([0, 1, 2], [1, 1, 0.5])).toEqual([1, 2, 2.5]);
    expect(within([0, 1, 2], [1, 2, 2.5], [1, 2.5])).toEqual([1, 2]);
    expect(within([0, 1, 2], [1, 2, 2.5], [1, 2.5], true)).toEqual([0]);
  });

  it('ends where buckets end', () => {
    expect(windowEnd(detail.series)).toBe(2.5);
    expect(snapped([0.2, 1.6], detail.series)).toEqual([0, 2]);
    expect(snapped([0.6, 1.2], detail.series)).toBeNull();
  });

  it('has the tps of its transactions and its length', () => {
    const tps = figures(detail, statements, [1, 2.5]).find((f) => f.name === 'tps');
    expect(tps).toMatchObject({ interval: 100, rest: 100, whole: 100 });
    const failed = figures(detail, statements, [1, 2]).find((f) => f.name === 'failed transactions');
    expect(failed?.interval).toBe(50);
    expect(failed?.rest).toBe(0);
  });

  it('has percentiles of its own histogram', () => {
    const counts = histogram(heat, new Set([0]));
    expect([...counts]).toEqual([[80, 90], [88, 10]]);
    // Rank 50 of 90 in the bucket from 2^10 µs.
    expect(quantile(counts, heat, 0.5)).toBeCloseTo(2 ** (10 + 50 / 90 / 8), 6);
    expect(quantile(counts, heat, 0.95)).toBeCloseTo(2 ** (11 + 0.5 / 8), 6);
    expect(quantile(new Map(), heat, 0.5)).toBeNull();
    expect(quantileError(heat)).toBeCloseTo(0.0443, 3);
    expect(figures(detail, statements, [1, 2]).find((f) => f.name === 'p50')?.interval).toBeCloseTo((2 ** (12 + 0.5 / 8)) / 1000, 6);
  });

  it('has no percentiles without a histogram', () => {
    const names = figures({ ...detail, heat: null }, [], [0, 1]).map((f) => f.name);
    expect(names).toEqual(['tps', 'failed transactions', 'WAL']);
  });

  it('leaves unknown values out of means of telemetry', () => {
    const wal = figures(detail, statements, [0, 2]).find((f) => f.name === 'WAL');
    expect(wal).toMatchObject({ interval: 4, rest: 8, group: 'WAL generated' });
  });
});
