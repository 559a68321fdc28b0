// Figures that pgdyno read in somebody else's report.

/** A printed number. */
export interface Figure {
  value: number;
  /** Half a unit of the last printed digit; 0 for a count. */
  half: number;
  /** Where it stands in its file, from 1. */
  line: number;
}

type Maybe = Figure | null | undefined;

export interface ReportStatement {
  text: string;
  latency_ms: Figure;
  failures: Maybe;
}

export interface ReportProgress {
  at_s: Figure;
  tps: Figure;
  latency_ms: Maybe;
}

/** What one run of pgbench printed. */
export interface PgbenchFigures {
  label: string | null;
  line: number;
  last_line: number;
  version: string | null;
  transaction_type: string | null;
  scale: Maybe;
  query_mode: string | null;
  clients: Maybe;
  threads: Maybe;
  transactions_per_client: Maybe;
  duration_s: Maybe;
  transactions: Maybe;
  failed: Maybe;
  latency_average_ms: Maybe;
  latency_stddev_ms: Maybe;
  tps_including: Maybe;
  tps_excluding: Maybe;
  tps_without: Maybe;
  tps_reconnecting: Maybe;
  tps_bare: Maybe;
  statements: ReportStatement[];
  scripts: { name: string; statements: ReportStatement[] }[];
  progress: ReportProgress[];
}

/** What one run of sysbench printed. */
export interface SysbenchFigures {
  line: number;
  last_line: number;
  threads: Maybe;
  transactions: Maybe;
  per_second: Maybe;
  queries: Maybe;
  errors: Maybe;
  total_time_s: Maybe;
  latency_average_ms: Maybe;
  progress: ReportProgress[];
}

export interface ReportTable {
  line: number;
  header: string[];
  tps: boolean;
  summarised: boolean;
  meaning: string;
  rows: {
    label: string;
    line: number;
    repeats: Figure[];
    mean: Maybe;
    ratio: Maybe;
    share: Maybe;
    has_spread: boolean;
    /** Figures of unknown meaning with their columns. */
    others: [number, Figure][];
  }[];
}

export interface Recognised {
  runs: PgbenchFigures[];
  sysbench: SysbenchFigures[];
  tables: ReportTable[];
  fsync: { section: string; method: string; per_second: Figure; us: Maybe }[];
  cpus: { line: number; parts: [string, Figure][] }[];
  devices: { device: string; columns: [string, Figure][] }[];
  settings: { name: string; value: string; line: number }[];
  storage: { what: unknown; words: string; line: number }[];
}

export interface ImportedRun {
  id: string;
  provenance: string;
  source: string;
  /** Of the file, in hexadecimal digits. */
  sha256: string;
  imported_at: string;
  pgdyno_version: string;
  recognised: Recognised;
}
