// Comparisons.
import type { Interval, LatencyView, Levels, Percentile, RatioView, TpsView, WhyView } from './run';

export interface SideView {
  run: string;
  recipe: string;
  started_at: string;
  state: string;
  unmatched: string[];
}

export interface MemberView {
  treatment: number;
  label: string;
  factors: Levels;
  trials: number;
  tps: TpsView | null;
  reason: string | null;
  latency_us: LatencyView | null;
}

export interface PairView {
  label: string;
  a: MemberView;
  b: MemberView;
  ratio: RatioView;
  latency: { percentile: Percentile; value: number; ci95: Interval | null }[];
  why: WhyView | null;
  generator_limited: boolean;
  words: string;
}

export interface CompareView {
  a: SideView;
  b: SideView;
  by: string[];
  same_run: boolean;
  measure: string;
  answer: string[];
  pairs: PairView[];
  unequal: { what: string; a: string; b: string; on_purpose: boolean; pairs: number[] }[];
  gates: {
    gate: string;
    pair: number;
    change: number | null;
    ci95: Interval | null;
    state: string;
    outcome: string;
    form: string;
    noise_floor: number | null;
    catches: number | null;
    words: string;
  }[];
  exceeded: boolean;
  outcome: string | null;
  notes: string[];
}

export interface SideBySideRow {
  label: string;
  repeats: number | null;
  clients: number | null;
  tps: number;
  tps_ci95: Interval | null;
  ratio_to_best: number;
  latency_ms: number | null;
}

export interface SideBySideView {
  imported: string;
  source: string;
  theirs: SideBySideRow[];
  run: string;
  ours: SideBySideRow[];
  notes: string[];
}
