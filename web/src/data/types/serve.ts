// What `pgdyno serve` answers beside pages: lists, notes, histories, live runs.
import type { Badge } from './page';
import type { Interval } from './run';

/** What is served, and what the visitor may do. */
export interface ServerInfo {
  schema: string;
  pgdyno_version: string;
  store: string;
  can_write_notes: boolean;
  /** Why notes cannot be written; null if they can. */
  notes_reason: string | null;
  /** Whether a run may be stopped from here. */
  allows_control: boolean;
}

export interface RunRow {
  id: string;
  recipe: string;
  question: string | null;
  started_at: string;
  state: string;
  trials_done: number;
  trials_planned: number;
  attempts_failed: number;
  host: string | null;
  /** None while the run was not analysed yet. */
  badge: Badge | null;
  headline: string | null;
  /** tps by trial in order, at most 40. */
  spark: number[];
  note: string;
  tags: string[];
  is_live: boolean;
}

/** A probe, a session of crash tests, or an imported report. */
export interface OtherRow {
  id: string;
  kind: 'probe' | 'crash' | 'import';
  name: string;
  started_at: string;
  state: string | null;
  note: string;
  tags: string[];
}

export interface RunList {
  schema: string;
  runs: RunRow[];
  others: OtherRow[];
  /** Runs whose badge, headline and sparkline are not known yet (count). */
  pending: number;
}

export interface HistoryPoint {
  run: string;
  started_at: string;
  host: string | null;
  /** Completed trials (count). */
  trials: number;
  tps: number;
  ci95: Interval | null;
  latency_us_p99: number | null;
  pgdyno_version: string;
  postgres_version: string | null;
  state: string;
}

/** One recipe over time. */
export interface History {
  schema: string;
  recipe: string;
  treatments: { treatment: string; points: HistoryPoint[] }[];
  /** Runs of the recipe that are not in it yet (count). */
  pending: number;
}

export interface PlannedTrial {
  ordinal: number;
  block: number;
  treatment: number;
  repeat: number;
}

export interface LiveRun {
  schema: string;
  run: string;
  recipe: string;
  question: string | null;
  treatments: string[];
  trials: PlannedTrial[];
  /** Places of trials that earlier sessions completed. */
  done: number[];
  warm_up_s: number;
  window_s: number | null;
  is_open_ended: boolean;
}

export interface LoadSecond {
  elapsed_s: number;
  measuring: boolean;
  tps: number;
  failed: number;
  latency_us_p50: number | null;
  latency_us_p99: number | null;
  /** Bucket (4 an octave from 1 µs on) and count. */
  latencies: [number, number][];
  event_loop_lag_us_p99: number | null;
  /** Wait event, mean number of backends. */
  waits: [string, number][];
  left_s: number;
}

export interface Outlook {
  blocks: number;
  decided: number;
  comparisons: number;
  blocks_left: number | null;
  ceiling: number;
}

export type LiveRecord =
  | ({ event: 'begun' } & LiveRun)
  | { event: 'working'; what: string; share: number | null }
  | { event: 'note' | 'warning'; text: string }
  | ({ event: 'trial'; at: number; left_s: number } & PlannedTrial)
  | ({ event: 'second' } & LoadSecond)
  | {
      event: 'trial_done';
      ordinal: number;
      tps: number | null;
      latency_us_p99: number | null;
      failure: string | null;
      left_s: number;
    }
  | ({ event: 'outlook' } & Outlook)
  | { event: 'stopping' | 'taking_down' }
  | { event: 'ended'; state: string; error: string | null };

export type TrialState =
  | { state: 'left' | 'running' }
  | { state: 'done'; tps: number | null; latency_us_p99: number | null }
  | { state: 'failed'; failure: string };

/** A run as its records have it so far. */
export interface LiveState {
  run: LiveRun | null;
  trials: TrialState[];
  current: (PlannedTrial & { at: number; seconds: LoadSecond[] }) | null;
  working: [string, number | null] | null;
  messages: string[];
  outlook: Outlook | null;
  left_s: number | null;
  is_stopping: boolean;
  ended: [string, string | null] | null;
}
