// One attempt at a trial, and what is decoded only once it is opened.
import type { LatencyView, Levels } from './run';

export interface StatementView {
  script: string;
  line: number;
  text: string;
  failed: number;
  latency_us: LatencyView | null;
  first_byte_us: LatencyView | null;
}

export interface Change {
  t_s: number;
  before: number;
  after: number;
  with: string[];
}

/** Event in the server's log that the load may have felt. */
export interface LogEvent {
  t_s: number | null;
  kind: string;
  of: string;
  numbers: Record<string, number>;
}

export interface Steadiness {
  warm_up_s: number | null;
  steady: boolean | null;
  within: number | null;
  changes: Change[] | null;
  [key: string]: unknown;
}

export interface Step {
  rate: number | null;
  confirming: boolean;
  measured_s: number;
  tps: number | null;
  broken: string | null;
  [key: string]: unknown;
}

export interface TrialView {
  ordinal: number;
  block: number;
  treatment: number;
  factors: Levels;
  repeat: number;
  state: 'completed' | 'failed' | 'superfluous';
  failure: string | null;
  session: number | null;
  server: number | null;
  started_at: string;
  measured_at: string | null;
  tps: number | null;
  transactions: number | null;
  failed: number | null;
  failures: Record<string, number>;
  measured_s: number | null;
  warm_up_s: number | null;
  aborted_clients: number;
  generator_cpus: number | null;
  busiest_thread: number | null;
  generator_limit: string | null;
  search: { max_rate: number | null; least_broken: number | null; steps: Step[] } | null;
  steadiness: Steadiness | null;
  latency_us: LatencyView | null;
  service_us: LatencyView | null;
  statements: StatementView[];
  events: LogEvent[] | null;
  [key: string]: unknown;
}

/** Mean of each time bucket; extremes where a bucket holds more than one second. */
export interface Reduced {
  mean: (number | null)[];
  min?: (number | null)[];
  max?: (number | null)[];
}

export interface TelemetryLine extends Reduced {
  name: string;
}

/** Rates over time that share a unit and an axis. */
export interface TelemetryTable {
  group: string;
  title: string;
  unit: string;
  stacked: boolean;
  detail: boolean;
  t_s: number[];
  lines: TelemetryLine[];
}

export interface Series {
  t_s: number[];
  length_s: number[];
  tps: Reduced;
  transactions: number[];
  failed: number[];
  p50: (number | null)[];
  p95: (number | null)[];
  p99: (number | null)[];
  max: (number | null)[];
}

/** Latency histogram by time bucket: bucket k covers base_us·2^(k/per_octave) and up. */
export interface Heat {
  base_us: number;
  per_octave: number;
  /** Flat triples: index of the time bucket, latency bucket, count. */
  rows: number[];
}

export interface TrialDetail {
  buckets: number;
  reduced: boolean;
  series: Series;
  heat: Heat | null;
  telemetry: TelemetryTable[];
}
