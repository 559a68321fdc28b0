// Crash tests.
import type { HostFacts, StorageFacts } from './facts';

/** `pass`, `bounded-loss`, `unknown`, `invalid`, `FAIL (…)` or `as planted (…)`. */
export type Verdict = string;

export interface GravestFault {
  fault: string;
  verdict: Verdict;
  planted: boolean;
  rounds: number;
  acknowledged: number;
  lost: number;
}

/** A check of the recovered database, and what came of it. */
export interface Check {
  name: string;
  outcome: 'passed' | 'allowed' | 'failed' | 'could-not-run' | 'not-applicable';
  found?: string;
}

/** A transaction that was acknowledged and is missing. */
export interface LostTransaction {
  token: { client: number; sequence: number };
  /** From its acknowledgement to the fault (milliseconds). */
  age_ms: number;
}

/** What a round put under test. */
export interface RoundPower {
  checkpoints: number | null;
  flushes: number | null;
  /** Acknowledged commits that only the last flush made durable (count). */
  last_window: number | null;
  disk_flushes: boolean;
  /** Share of the disk's cache that the cut took; null: all of it. */
  cache_lost?: number | null;
}

/** A filesystem after the power cut of a round. */
export interface FilesystemRecovery {
  storage: string;
  filesystem: string;
  /** The mount that replays the journal (milliseconds). */
  mount_ms: number;
  /** A check without repairs. */
  fsck:
    | { outcome: 'clean'; command: string; ms: number }
    | { outcome: 'complained'; command: string; ms: number; status: number; said: string }
    | { outcome: 'not-run'; why: string };
}

/** Mounts after power cuts and fsck, over rounds. */
export interface FilesystemsView {
  rounds: number;
  mount_ms: number | null;
  fsck_ms: number | null;
  complaints: number;
  words: string[];
}

/** Load, fault, recovery, verification. */
export interface Round {
  number: number;
  /** Text in a page, since it may exceed 2^53. */
  seed: string | number;
  aim: string;
  struck_after_ms: number;
  acknowledged: number;
  in_doubt: number;
  lost: number;
  tokens: LostTransaction[];
  oldest_lost_ms: number | null;
  recovery_ms: number | null;
  /** Absent in records of earlier versions. */
  filesystems?: FilesystemRecovery[];
  power?: RoundPower;
  verdict: Verdict;
  reason: string;
  checks: Check[];
  notes: string[];
  /** Lines of the server's log that bear on it. */
  log: string;
  kept: string | null;
  /** Lost transactions with their neighbours, a line each; null in older records. */
  ledger?: string | null;
  /** Command that repeats the round. */
  command?: string | null;
}

/** What the rounds of a fault put under test, and which faulty disks they would have shown. */
export interface FaultPower {
  rounds: number;
  checkpoints: number | null;
  flushes: number | null;
  last_window: [number, number] | null;
  windows: number;
  disk_flushes: boolean;
  one_in_10_seen: number | null;
  one_in_100_seen: number | null;
  words: string[];
}

export interface FaultView {
  verdict: Verdict;
  reason: string;
  fault: string;
  rounds: number;
  acknowledged: number;
  lost: number;
  oldest_lost_ms: number | null;
  /** Median over the rounds of the age of each one's oldest loss; absent in older records. */
  median_lost_ms?: number | null;
  recovery_ms: number | null;
  /** Absent in pages of earlier versions. */
  filesystems?: FilesystemsView | null;
  chance_at_most: number | null;
  /** Whether the fault is meant to fail. */
  planted: boolean;
  power: FaultPower | null;
  each: Round[];
}

/** A round that must fail, to show that the instrument sees such failures. */
export interface Control {
  name: string;
  fault?: string | null;
  seen: boolean;
  verdict: Verdict;
  reason: string;
}

export interface CrashView {
  id: string;
  run: string | null;
  treatment: number | null;
  name: string;
  verdict: Verdict;
  reason: string;
  fault: string;
  rounds: number;
  acknowledged: number;
  lost: number;
  gravest: GravestFault | null;
  oldest_lost_ms: number | null;
  recovery_ms: number | null;
  controls: Control[];
  faults: FaultView[];
  notes: string[];
  complete: boolean;
  seed: string | number;
  settings: Record<string, string>;
  started_at: string;
  pgdyno_version: string;
  server_version: string;
  host?: HostFacts;
  storage?: StorageFacts;
}
