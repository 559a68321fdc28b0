// What every page has.
import type { CrashView } from './crash';
import type { CompareView, SideBySideView } from './compare';
import type { ImportedRun } from './import';
import type { ProbeView } from './probe';
import type { RunView } from './run';

export type Badge = 'answered' | 'inconclusive' | 'unsafe' | 'unfinished' | 'recorded';
export type PanelId = 'treatments' | 'time' | 'safety' | 'environment' | 'shape' | 'why';

/** Evidence for a badge, and the panel that shows it. */
export interface Proof {
  kind: string;
  text: string;
  panel: PanelId;
  /** Index in the run's trials. */
  trial: number | null;
}

/** Answer to the page's question, and what to do next. */
export interface Headline {
  question: string | null;
  badge: Badge;
  /** One or two sentences; code stands in backticks. */
  answer: string;
  /** At most three, formatted. */
  figures: { name: string; value: string; detail: string | null }[];
  command: string | null;
  proofs: Proof[];
}

/** What a reader must know to trust or doubt the figures. */
export interface Caution {
  text: string;
  kind: string;
  tier: 'conclusion' | 'context';
}

export interface Row {
  name: string;
  text: string;
  /** Whether only a reader who asks for details wants it. */
  detail: boolean;
}

export interface Environment {
  title: string;
  rows: Row[];
  storages: { name: string; rows: Row[] }[];
}

/** a, b (treatments, a < b), ratio of b's tps to a's, low, high, p judged together, significant. */
export type Pair = [
  number,
  number,
  number,
  number | null,
  number | null,
  number | null,
  boolean | null,
];

export interface Pairs {
  treatments: number;
  rows: Pair[];
  /** Whether every pair of treatments has a row. */
  complete: boolean;
}

export interface SteadinessRow {
  number: number;
  warm_up: string;
  seconds: number;
  effective: string;
  within: string;
  why: string | null;
  changes: string[];
}

/** Row of an environment that two runs do not share. */
export interface DifferenceRow {
  group: string;
  name: string;
  a: string | null;
  b: string | null;
}

interface Page<Kind extends string, View> {
  schema: string;
  kind: Kind;
  /** Version of the pgdyno that wrote the page. */
  pgdyno_version: string;
  title: string;
  headline: Headline;
  cautions: Caution[];
  view: View;
  environment: Environment[];
  pairs: Pairs | null;
  steadiness: SteadinessRow[] | null;
  differences: DifferenceRow[] | null;
}

export type RunPage = Page<'run', RunView>;
export type CrashPage = Page<'crash', CrashView>;
export type ProbePage = Page<'probe', ProbeView>;
export type ComparePage = Page<'compare', CompareView>;
export type BesidePage = Page<'beside', SideBySideView>;
export type ImportPage = Page<'import', ImportedRun>;
export type PageDocument =
  | RunPage
  | CrashPage
  | ProbePage
  | ComparePage
  | BesidePage
  | ImportPage;
export type PageKind = PageDocument['kind'];

export const PAGE_SCHEMA = 'pgdyno.page/1';
