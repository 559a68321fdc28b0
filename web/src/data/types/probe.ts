// Probes: a storage measured without PostgreSQL.
import type { HostFacts, StorageFacts } from './facts';

/** A distribution of latencies in short (microseconds). */
export interface LatencySummary {
  us_mean: number;
  us_p50: number;
  us_p90: number;
  us_p95: number;
  us_p99: number;
  us_p999: number;
  us_max: number;
}

/** Operations of one test: the writes and what makes them durable. */
export interface Flushes {
  operations: number;
  seconds: number;
  latency: LatencySummary;
}

export type FsyncGroup =
  | 'one-block'
  | 'two-blocks'
  | 'open-sync-sizes'
  | 'other-descriptor'
  | 'not-synced'
  | 'concurrent';

export interface FsyncTest {
  group: FsyncGroup;
  name: string;
  /** Files written at the same time (count). */
  files: number;
  outcome: { measured: Flushes } | { 'not-available': string };
}

export interface FsyncProbe {
  kind: 'fsync';
  block_bytes: number;
  seconds_per_test: number;
  tests: FsyncTest[];
  complete: boolean;
  warnings: string[];
  suspicions?: string[];
}

/** Requests of one direction. */
export interface Transfers {
  operations: number;
  iops: number;
  bytes_per_second: number;
  latency: LatencySummary;
}

/** Point of a disk's curve. */
export interface DiskPoint {
  pattern: 'write' | 'read' | 'randread' | 'randwrite' | 'randrw';
  block_bytes: number;
  queue_depth: number;
  offset: number;
  length: number;
  seconds: number;
  read: Transfers | null;
  write: Transfers | null;
}

export interface DiskProbe {
  kind: 'disk';
  driver: string;
  /** Whether the page cache was bypassed. */
  direct: boolean;
  span: number;
  seconds_per_point: number;
  points: DiskPoint[];
  not_measured: string[];
  complete: boolean;
  warnings: string[];
}

export interface ProbeView {
  id: string;
  run: string | null;
  name: string;
  started_at: string;
  pgdyno_version: string;
  host?: HostFacts;
  storage?: StorageFacts;
  result: FsyncProbe | DiskProbe;
}
