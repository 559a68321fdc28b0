import { describe, expect, it } from 'vitest';
import type { Chart, TrialDetail, TrialView } from '../data/types';
import { look } from '../palette';
import { marksOf } from './marks';
import { panelsOf, stacked, valuesAt } from './panels';

const table = (group: string, names: [string, number][], detail = false): Chart => ({
  group,
  title: group,
  unit: '1/s',
  stacked: group === 'wait_events',
  detail,
  t_s: [0, 1],
  lines: names.map(([name, value]) => ({ name, mean: [value, value] })),
});
const detail: TrialDetail = {
  buckets: 2,
  reduced: false,
  statements: [],
  series: {
    t_s: [0, 1], length_s: [1, 1], tps: { mean: [10, 20] }, transactions: [10, 20], failed: [0, 0],
    p50: [1000, null], p95: [2000, 2000], p99: [3000, 3000], max: [4000, 4000],
  },
  heat: null,
  telemetry: [
    table('blocks', [['read', 1]], true),
    table('cpu', [['user', 50]]),
    table('wait_events', [['Client:ClientRead', 7], ['others', 3], ['CPU', 1], ['IO:WALSync', 2]]),
  ],
};

describe('charts over time', () => {
  const panels = panelsOf(detail, look(0), null, null);
  const waits = panels.find((p) => p.id === 'wait_events');

  it('begin with load and waits, and end with details', () => {
    expect(panels.map((p) => p.id)).toEqual(['tps', 'latency', 'wait_events', 'cpu-1', 'blocks-2']);
  });

  it('leave idle backends out, and say so', () => {
    expect(waits?.lines.map((l) => l.name)).toEqual(['IO:WALSync', 'CPU', 'others']);
    expect(waits?.note).toContain('7.0 on average');
  });

  it('draw waits in greys with one accent, and never in a treatment’s colour', () => {
    const colours = waits?.lines.map((l) => l.colour);
    expect(colours).toEqual(['var(--accent)', 'var(--grey-1)', 'var(--grey-2)']);
    const focused = panelsOf(detail, look(0), null, 'CPU').find((p) => p.id === 'wait_events');
    expect(focused?.lines.find((l) => l.colour === 'var(--accent)')?.name).toBe('CPU');
  });

  it('draw percentiles where there is no histogram, in milliseconds', () => {
    expect(panels[1].lines.map((l) => [l.name, l.mean])).toEqual([['p50', [1, null]], ['p95', [2, 2]], ['p99', [3, 3]]]);
    expect(panelsOf({ ...detail, heat: { base_us: 1, per_octave: 8, rows: [0, 80, 1] } }, look(0), null, null)[1].kind).toBe('heat');
  });

  it('lay a second trial under, in its own look', () => {
    const both = panelsOf(detail, look(0), { detail, look: look(1) }, null);
    expect(both[0].under?.lines[0].colour).toBe(look(1).colour);
  });

  it('stack parts, and count unknown ones as nothing', () => {
    expect(stacked([[1, null], [2, 3]])).toEqual([[1, null], [3, 3]]);
  });

  it('read the value under the cursor', () => {
    expect([valuesAt(panels[0], 0.5), valuesAt(panels[0], 1.9), valuesAt(panels[0], 5), valuesAt(panels[0], null)]).toEqual([[10], [20], [null], [null]]);
  });
});

it('marks are spans of checkpoints, autovacuum and changes within the window', () => {
  const event = (t_s: number, kind: string, of = '', numbers = {}) => ({ t_s, kind, of, numbers });
  const trial = {
    events: [
      event(-3, 'checkpoint starting', 'time'),
      event(5, 'checkpoint complete'),
      event(10, 'automatic vacuum', 'public.t', { elapsed_s: 2 }),
      event(20, 'checkpoint starting', 'wal'),
    ],
    steadiness: { changes: [{ t_s: 12, before: 100, after: 50, with: ['a checkpoint begins (wal)'] }] },
  } as unknown as TrialView;
  expect(marksOf(trial, 30).map((m) => [m.kind, m.from, m.to])).toEqual([
    ['checkpoint', 0, 5],
    ['autovacuum', 8, 10],
    ['change', 12, 12],
    ['checkpoint', 20, 30],
  ]);
  expect(marksOf({ events: null, steadiness: null } as unknown as TrialView, 30)).toEqual([]);
});
