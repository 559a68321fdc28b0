import { describe, expect, it } from 'vitest';
import sums from '../../../crates/report/src/live/sums.json?raw';
import type { LiveRecord, LiveRun, LiveState, LoadSecond } from '../data/types';
import { added, byTreatment, doneCount, DRAWN, livePanels, NO_STATE, outlookWords } from './live';
import { timeLeft } from './words';

const planned = (ordinal: number) => ({ ordinal, block: 1, treatment: ordinal % 2, repeat: 1 });
const run = (done: number[] = []): LiveRun => ({
  schema: 'pgdyno.live/1',
  run: 'try',
  owner: { pid: 1, started_ticks: 1, boot_id: '' },
  started_at: 0,
  recipe: 'try',
  question: null,
  treatments: ['a', 'b'],
  trials: [0, 1, 2, 3].map(planned),
  done,
  warm_up_s: 1,
  window_s: 5,
  is_open_ended: true,
});
const second = (elapsed_s: number, change: Partial<LoadSecond> = {}): LoadSecond => ({
  elapsed_s,
  measuring: true,
  tps: 10,
  failed: 0,
  latency_us_p50: 1000,
  latency_us_p99: 2000,
  latencies: [[40, 3]],
  event_loop_lag_us_p99: null,
  waits: [],
  left_s: 9,
  ...change,
});
const sum = (records: LiveRecord[], from: LiveState = NO_STATE) => records.reduce(added, from);

describe('a live run', () => {
  it('is what Rust makes of the same records', () => {
    const cases = JSON.parse(sums) as { records: LiveRecord[]; state: LiveState }[];
    expect(cases.length).toBeGreaterThan(5);
    for (const { records, state } of cases) {
      expect(sum(records)).toEqual(state);
    }
  });

  it('is added up from its records', () => {
    const state = sum([
      { event: 'begun', ...run([0]) },
      { event: 'trial', ...planned(1), at: 5, left_s: 10 },
      { event: 'second', ...second(1) },
      { event: 'trial_done', ordinal: 1, tps: 12.5, latency_us_p99: 2000, failure: null, left_s: 5 },
      { event: 'trial', ...planned(2), at: 6, left_s: 5 },
      { event: 'second', ...second(1) },
      { event: 'second', ...second(2, { left_s: 4 }) },
    ]);
    expect(state.trials.map((t) => t.state)).toEqual(['done', 'done', 'running', 'left']);
    expect(state.current?.seconds).toHaveLength(2);
    expect([state.left_s, doneCount(state)]).toEqual([4, 2]);
    // The first treatment's trial is of an earlier session, which left no figures here.
    expect(byTreatment(state).map((t) => [t.done, t.tps])).toEqual([[1, null], [1, 12.5]]);
  });

  it('keeps why a trial failed, its messages, and how it ended', () => {
    const state = sum([
      { event: 'begun', ...run() },
      { event: 'warning', text: 'hot' },
      { event: 'trial_done', ordinal: 0, tps: null, latency_us_p99: null, failure: 'no server', left_s: 5 },
      { event: 'stopping' },
      { event: 'ended', state: 'interrupted', error: null },
    ]);
    expect(state.trials[0]).toEqual({ state: 'failed', failure: 'no server' });
    expect(state.messages).toEqual(['warning: hot']);
    expect([state.is_stopping, state.ended]).toEqual([true, ['interrupted', null]]);
  });

  it('is begun again by a second session, and ignores what it does not know', () => {
    const before = sum([{ event: 'begun', ...run() }, { event: 'note', text: 'old' }]);
    expect(added(before, { event: 'later' } as unknown as LiveRecord)).toEqual(before);
    expect(added(before, { event: 'begun', ...run([0, 1]) }).messages).toEqual([]);
    expect(added(NO_STATE, { event: 'second', ...second(1) }).current).toBeNull();
  });

  it('says when it will be decided', () => {
    const of = (blocks_left: number | null, is_open_ended = true) =>
      outlookWords({ ...NO_STATE, run: { ...run(), is_open_ended }, outlook: { blocks: 3, decided: 1, comparisons: 2, blocks_left, ceiling: 30 } });
    expect(of(1)).toContain('about 1 more block.');
    expect(of(4)).toContain('about 4 more blocks.');
    expect(of(null)).toContain('too little is known');
    expect(of(4, false)).toBeNull();
  });

  it('draws its last seconds, and what was measured in them', () => {
    expect(livePanels([])).toEqual([]);
    expect(livePanels([second(1)]).map((p) => p.id)).toEqual(['tps', 'latency']);
    const long = Array.from({ length: DRAWN + 50 }, (_, i) => second(i + 1, { waits: [['CPU', 1], ['IO:WALSync', 3]], event_loop_lag_us_p99: 80 }));
    const panels = livePanels(long);
    expect(panels.map((p) => p.id)).toEqual(['tps', 'latency', 'wait_events', 'lag']);
    for (const panel of panels) {
      expect(panel.t).toHaveLength(DRAWN + 1);
      expect(panel.lines.every((line) => line.mean.length === DRAWN)).toBe(true);
    }
    expect(panels[2].lines.map((l) => [l.name, l.colour === 'var(--accent)'])).toEqual([['IO:WALSync', true], ['CPU', false]]);
  });
});

it('a time that is left has as few words as it needs', () => {
  expect([5, 89, 90, 3600, 7500, -1, NaN].map(timeLeft)).toEqual(['5 s', '89 s', '2 min', '60 min', '2 h 5 min', '0 s', '–']);
});
