// Crash tests.

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

export interface Round {
  [key: string]: unknown;
  /** Text in a page, since it may exceed 2^53. */
  seed?: string | number;
  /** Lost transactions with their neighbours, a line each; null in older records. */
  ledger?: string | null;
  /** Command that repeats the round. */
  command?: string;
}

export interface FaultView {
  verdict: Verdict;
  reason: string;
  fault: string;
  rounds: number;
  acknowledged: number;
  lost: number;
  oldest_lost_ms: number | null;
  recovery_ms: number | null;
  chance_at_most: number | null;
  planted: boolean;
  power: { words: string[]; [key: string]: unknown } | null;
  each: Round[];
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
  controls: unknown[];
  faults: FaultView[];
  notes: string[];
  complete: boolean;
  seed: string | number;
  settings: Record<string, string>;
  started_at: string;
  pgdyno_version: string;
  server_version: string;
  [key: string]: unknown;
}
