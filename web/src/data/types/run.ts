// A run, analysed.
import type { CrashView, FilesystemsView, GravestFault, Verdict } from './crash';
import type { StatementView, TrialView } from './trial';

export type Interval = [number, number];
export type LevelValue = string | number | boolean;
export type Levels = Record<string, LevelValue>;

export interface LatencyView {
  count: number;
  mean: number;
  stddev: number;
  p50: number;
  p90: number;
  p95: number;
  p99: number;
  p99_9: number;
  p99_99: number;
  max: number;
}

export type Percentile = 'p50' | 'p95' | 'p99';

export interface TpsView {
  mean: number;
  ci95: Interval | null;
  sd: number | null;
  min: number;
  max: number;
}

export interface RatioView {
  value: number | null;
  ci95: Interval | null;
  within_runs: Interval | null;
  method: string | null;
  p: number | null;
  p_together: number | null;
  told_apart: boolean | null;
  withheld: string | null;
  equivalent: boolean | null;
  detectable: number | null;
  verdict: string;
}

export interface TreatmentCrash {
  id: string;
  verdict: Verdict;
  reason: string;
  acknowledged: number;
  lost: number;
  gravest: GravestFault | null;
  /** Absent in pages of earlier versions. */
  filesystems?: FilesystemsView | null;
}

export interface WaitView {
  event: string;
  share: number;
  backends: number;
}

export interface TreatmentView {
  index: number;
  label: string;
  factors: Levels;
  trials: number;
  trials_planned: number;
  attempts_failed: number;
  tps: TpsView | null;
  crash: TreatmentCrash | null;
  reason: string | null;
  latency_us: LatencyView | null;
  unavailable: string | null;
  latency_intervals: { percentile: Percentile; us: number; ci95: Interval | null }[];
  generator_limited: number;
  drift: unknown;
  service_us: LatencyView | null;
  not_ranked: string | null;
  ratio_to_best: RatioView | null;
  transactions: number;
  failed: number;
  failures: Record<string, number>;
  commits_wait: boolean | null;
  fsync_per_second: number | null;
  wal_flushes_per_second: number | null;
  commits_per_flush: number | null;
  little: number | null;
  statements: StatementView[];
  waits: WaitView[];
  /** Share of transactions, microseconds. */
  quantiles: [number, number][];
}

export interface Comparison {
  factor: string;
  given: string;
  treatment: number;
  to: number;
  ratio: RatioView;
  holm: boolean | null;
  latency: { percentile: Percentile; value: number; ci95: Interval | null }[];
  generator_limited: boolean;
  words: string;
}

export interface Gap {
  value: number;
  ci95: Interval | null;
}

export type Part =
  | { statement: { script: string; line: number; text: string } }
  | 'wait-to-be-sent'
  | 'between-statements';

export interface PartView {
  what: string;
  part: Part | null;
  a_us: number;
  b_us: number;
  gap_us: Gap;
  share: number | null;
  ci95: Interval | null;
}

export interface GapView {
  a_us: number;
  b_us: number;
  gap_us: Gap;
  told_apart: boolean | null;
  parts: PartView[];
}

export interface FigureView {
  name: string;
  unit: string;
  a: number | null;
  b: number | null;
  ratio: number | null;
  ci95: Interval | null;
}

/** A difference taken apart: `treatment` (B) against `to` (A). */
export interface WhyView {
  treatment: number;
  to: number;
  latency: GapView | null;
  active: GapView | null;
  figures: FigureView[];
  missing: string[];
  words: string[];
}

export interface CurvePoint {
  rate: number;
  ordinal: number;
  confirming: boolean;
  latency_us_p50: number | null;
  latency_us_p95: number | null;
  latency_us_p99: number | null;
  broken: string | null;
}

export interface CapacityView {
  treatment: number;
  curve: CurvePoint[];
  words: string;
  objective?: { percentile: string; limit_us: number } | null;
}

export interface Fitted {
  value: number;
  ci95: Interval | null;
}

/** Universal Scalability Law, fitted. */
export interface Scaling {
  lambda: Fitted;
  sigma: Fitted;
  kappa: Fitted;
  peak_clients: Fitted | null;
  peak: Fitted | null;
  knee: Fitted | null;
  worst: number;
  measured_to: number;
}

export interface ScalingView {
  given: string;
  treatments: number[];
  law: Scaling | null;
  words: string;
}

export interface NoiseFloor {
  run: string;
  started_at: string;
  names: [string, string];
  ratio: number;
  ci95: Interval;
  blocks: number;
  /** A difference below it (a share) may be none. */
  floor: number;
  latency: { percentile: string; floor: number }[];
}

export interface PlannedTreatment {
  levels: Levels;
  storage: string;
  workload: string;
  scale: number;
  clients: number;
  threads: number;
  protocol: string;
  postgres_version: number | null;
  settings: Record<string, string>;
}

export interface Plan {
  name: string;
  question: string | null;
  factors: string[];
  treatments: PlannedTreatment[];
  trials: { ordinal: number; block: number; treatment: number; repeat: number }[];
  warm_up: string;
  length: unknown;
  /** Text in a page, since it may exceed 2^53. */
  seed: string | number;
  margin: number | null;
  [key: string]: unknown;
}

export interface ServerView {
  version: string;
  version_num: number;
  build: unknown;
  trials: number[];
  settings: {
    name: string;
    unit: string | null;
    source: string;
    value: string | null;
    values: [string, number[]][];
  }[];
}

export interface StageProbeView {
  id: string;
  kind: 'fsync' | 'disk';
  storage: string;
  started_at: string;
  attempts_before: number;
  /** Whether free blocks were discarded right before; absent in older documents. */
  after_trim?: boolean;
  complete: boolean;
  flushes_per_second: number | null;
  write_bytes_per_second: number | null;
  read_bytes_per_second: number | null;
  randread_iops: number | null;
  randwrite_iops: number | null;
  warnings: string[];
  acknowledges_from_cache: string[];
}

export interface FsyncView {
  storage: string;
  method: string;
  block_bytes: number;
  flushes: number;
  seconds: number;
  per_second: number | null;
  latency_us: LatencyView | null;
  measured_at: string;
}

export interface RunView {
  run: {
    id: string;
    recipe: string;
    state: string;
    question: string | null;
    started_at: string;
    pgdyno_version: string;
    trials_planned: number;
    trials_completed: number;
    attempts_failed: number;
  };
  answer: string[];
  best: number | null;
  treatments: TreatmentView[];
  comparisons: Comparison[];
  why: WhyView[];
  capacity: CapacityView[];
  scaling: ScalingView[];
  noise_floor: NoiseFloor | null;
  stopping: { words: string; open: string[] } | null;
  notes: string[];
  trials: TrialView[];
  fsync: FsyncView[];
  probes: StageProbeView[];
  crashes: CrashView[];
  sessions: { started_at: string; end: unknown; host: unknown; storage: unknown[] }[];
  servers: ServerView[];
  plan: Plan;
  experiment: string;
  overrides: string[];
}
