// A live run, added up from its records as `LiveState` in crates/model does. Pure.
import type { LiveRecord, LiveRun, LiveState, LoadSecond, LiveTrialState } from '../data/types';
import type { Line, Panel } from '../time/panels';
import { grey } from '../palette';

export const NO_STATE: LiveState = {
  run: null,
  trials: [],
  current: null,
  working: null,
  messages: [],
  outlook: null,
  left_s: null,
  is_stopping: false,
  ended: null,
};

/** State of a run at its beginning. */
function begun(run: LiveRun): LiveState {
  const trials = run.trials.map(
    (planned): LiveTrialState =>
      run.done.includes(planned.ordinal) ? { state: 'done', tps: null, latency_us_p99: null } : { state: 'left' },
  );
  return { ...NO_STATE, run, trials };
}

/** What a record tells, without what it is. */
function of<T extends LiveRecord>(record: T): Omit<T, 'event'> {
  const told: Partial<T> = { ...record };
  delete told.event;
  return told as Omit<T, 'event'>;
}

function withTrial(state: LiveState, ordinal: number, trial: LiveTrialState): LiveTrialState[] {
  return state.trials.map((other, i) => (i === ordinal ? trial : other));
}

/** Adds the next record. One that a later pgdyno writes is left out. */
export function added(state: LiveState, record: LiveRecord): LiveState {
  switch (record.event) {
    case 'begun':
      return begun(of(record));
    case 'working': {
      const { what, share, detail } = record;
      return { ...state, working: [detail ? `${what}: ${detail}` : what, share] };
    }
    case 'note':
      return { ...state, messages: [...state.messages, record.text] };
    case 'warning':
      return { ...state, messages: [...state.messages, `warning: ${record.text}`] };
    case 'trial': {
      const { left_s, ...trial } = of(record);
      const trials = withTrial(state, record.ordinal, { state: 'running' });
      return { ...state, trials, current: { ...trial, seconds: [] }, working: null, left_s };
    }
    case 'second': {
      const { current } = state;
      const next = current && { ...current, seconds: [...current.seconds, of(record)] };
      return { ...state, working: null, left_s: record.left_s, current: next };
    }
    case 'trial_done': {
      const { failure, tps, latency_us_p99 } = record;
      const trial: LiveTrialState = failure === null ? { state: 'done', tps, latency_us_p99 } : { state: 'failed', failure };
      return { ...state, trials: withTrial(state, record.ordinal, trial), current: null, left_s: record.left_s };
    }
    case 'outlook':
      return { ...state, outlook: of(record) };
    case 'stopping':
      return { ...state, is_stopping: true };
    case 'taking_down':
      return { ...state, working: ['taking down what was made', null] };
    case 'ended':
      return { ...state, current: null, working: null, ended: [record.state, record.error] };
    default:
      return state;
  }
}

export interface TreatmentProgress {
  treatment: number;
  label: string;
  planned: number;
  done: number;
  failed: number;
  /** Means over the trials that this session completed. */
  tps: number | null;
  latency_us_p99: number | null;
}

function mean(values: (number | null)[]): number | null {
  const known = values.filter((v) => v !== null);
  return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
}

/** What each treatment has so far. */
export function byTreatment({ run, trials }: LiveState): TreatmentProgress[] {
  return (run?.treatments ?? []).map((label, treatment) => {
    const own = (run?.trials ?? []).flatMap((planned, i) => (planned.treatment === treatment ? [trials[i]] : []));
    const done = own.filter((t) => t?.state === 'done');
    return {
      treatment,
      label,
      planned: own.length,
      done: done.length,
      failed: own.filter((t) => t?.state === 'failed').length,
      tps: mean(done.map((t) => t.tps)),
      latency_us_p99: mean(done.map((t) => t.latency_us_p99)),
    };
  });
}

/** Trials that are in the store (count). */
export function doneCount({ trials }: LiveState): number {
  return trials.filter((t) => t.state === 'done').length;
}

/** What can be said of the run's end by its comparisons. */
export function outlookWords({ run, outlook }: LiveState): string | null {
  if (!run?.is_open_ended || !outlook) {
    return null;
  }
  const { decided, comparisons, blocks_left, blocks, ceiling } = outlook;
  const stand = `${decided} of ${comparisons} comparisons decided after ${blocks} of at most ${ceiling} blocks`;
  if (blocks_left === null) {
    return `${stand}; too little is known to say how many more it takes.`;
  }
  return blocks_left === 0
    ? `${stand}: nothing more is to be measured.`
    : `${stand}; all decided after about ${blocks_left} more block${blocks_left === 1 ? '' : 's'}.`;
}

/** Seconds that are drawn, at most. */
export const DRAWN = 600;

const look = (name: string, mean: (number | null)[], dash = ''): Line => ({ name, mean, colour: 'var(--ink)', dash });
const ms = (us: number | null) => (us === null ? null : us / 1000);

/** Charts of a trial in progress: throughput, latency, waits, event-loop lag. */
export function livePanels(all: LoadSecond[]): Panel[] {
  const seconds = all.slice(-DRAWN);
  if (seconds.length === 0) {
    return [];
  }
  const first = seconds[0].elapsed_s;
  const t = [first - Math.min(1, first), ...seconds.map((s) => s.elapsed_s)];
  const out: Panel[] = [
    { id: 'tps', title: 'Throughput', unit: 'tps', kind: 'lines', t, lines: [look('tps', seconds.map((s) => s.tps))] },
    {
      id: 'latency',
      title: 'Latency',
      unit: 'ms',
      kind: 'heat',
      t,
      lines: [
        look('p50', seconds.map((s) => ms(s.latency_us_p50))),
        look('p99', seconds.map((s) => ms(s.latency_us_p99)), '4 3'),
      ],
      heat: {
        base_us: 1,
        per_octave: 4,
        rows: seconds.flatMap((s, i) => s.latencies.flatMap(([bucket, count]) => [i, bucket, count])),
      },
    },
  ];
  const waits = waitPanel(seconds, t);
  if (waits) {
    out.push(waits);
  }
  if (seconds.some((s) => s.event_loop_lag_us_p99 !== null)) {
    const note = 'How late the load generator’s event loops were. If it nears the latency, the generator is the limit.';
    const lag = look('p99', seconds.map((s) => ms(s.event_loop_lag_us_p99)));
    out.push({ id: 'lag', title: 'Event-loop lag', unit: 'ms', kind: 'lines', note, t, lines: [lag] });
  }
  return out;
}

/** Wait events, the most frequent below; colours are greys with one accent. */
function waitPanel(seconds: LoadSecond[], t: number[]): Panel | null {
  const sums = new Map<string, number>();
  for (const [name, backends] of seconds.flatMap((s) => s.waits)) {
    sums.set(name, (sums.get(name) ?? 0) + backends);
  }
  const names = [...sums].sort((a, b) => b[1] - a[1]).slice(0, 6).map(([name]) => name);
  if (names.length === 0) {
    return null;
  }
  const accent = names.find((name) => name !== 'CPU');
  let greys = 0;
  const lines = names.map((name) => ({
    name,
    mean: seconds.map((s) => s.waits.find((wait) => wait[0] === name)?.[1] ?? 0),
    colour: name === accent ? 'var(--accent)' : grey(greys++),
    dash: '',
  }));
  return { id: 'wait_events', title: 'What the load’s backends wait for', unit: 'backends', kind: 'stack', t, lines };
}
