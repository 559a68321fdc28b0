// Rows of the list of runs: what is searched, filtered and sorted, and how the URL says it. Pure.
import type { NotedRow, Runs, RunRow } from '../data/types';
import { BASE } from './base';

export type Kind = 'run' | NotedRow['kind'];

/** A row of the list, with its texts in lower case for the search. */
export interface Row {
  id: string;
  kind: Kind;
  name: string;
  state: string;
  started_at: string;
  host: string;
  note: string;
  tags: string[];
  isLive: boolean;
  /** None but for runs. */
  run: RunRow | null;
  text: string;
}

/** What a reader looks for. Empty texts look for everything. */
export interface Query {
  search: string;
  kind: string;
  state: string;
  recipe: string;
  host: string;
  tag: string;
  sort: Sort;
}

export const SORTS = {
  newest: 'newest first',
  oldest: 'oldest first',
  recipe: 'by recipe',
  state: 'by state',
} as const;
export type Sort = keyof typeof SORTS;

export const EVERYTHING: Query = { search: '', kind: '', state: '', recipe: '', host: '', tag: '', sort: 'newest' };

export const KINDS: Record<Kind, string> = { run: 'Run', probe: 'Probe', crash: 'Crash tests', import: 'Imported report' };

function withText(row: Omit<Row, 'text'>): Row {
  const { id, kind, name, state, host, note, tags, run } = row;
  const parts = [id, KINDS[kind], name, state, host, note, ...tags, run?.question, run?.headline, run?.badge, run?.ad_hoc && 'ad hoc'];
  return { ...row, text: parts.filter(Boolean).join('\n').toLowerCase() };
}

/** All rows of a store. */
export function rowsOf({ runs, others }: Runs): Row[] {
  const own = runs.map((run) =>
    withText({
      id: run.id,
      kind: 'run',
      name: run.recipe,
      state: run.is_live ? 'live' : run.state,
      started_at: run.started_at,
      host: run.host ?? '',
      note: run.note,
      tags: run.tags,
      isLive: run.is_live,
      run,
    }),
  );
  const rest = others.map(({ id, kind, name, started_at, state, note, tags }) =>
    withText({
      id,
      kind,
      name,
      state: state ?? '',
      started_at,
      host: '',
      note,
      tags,
      isLive: false,
      run: null,
    }),
  );
  return [...own, ...rest];
}

const ORDERS: Record<Sort, (a: Row, b: Row) => number> = {
  newest: (a, b) => compare(b.started_at, a.started_at),
  oldest: (a, b) => compare(a.started_at, b.started_at),
  recipe: (a, b) => compare(a.name, b.name) || compare(b.started_at, a.started_at),
  state: (a, b) => compare(a.state, b.state) || compare(b.started_at, a.started_at),
};

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/** Rows that are looked for, in order; live ones first. */
export function found(rows: Row[], query: Query): Row[] {
  const words = query.search.toLowerCase().split(/\s+/).filter(Boolean);
  const suits = (row: Row) =>
    (!query.kind || row.kind === query.kind) &&
    (!query.state || row.state === query.state) &&
    (!query.recipe || (row.kind === 'run' && row.name === query.recipe)) &&
    (!query.host || row.host === query.host) &&
    (!query.tag || row.tags.includes(query.tag)) &&
    words.every((word) => row.text.includes(word));
  const order = ORDERS[query.sort];
  return rows.filter(suits).sort((a, b) => Number(b.isLive) - Number(a.isLive) || order(a, b));
}

/** What there is to choose from, in order. */
export function choicesOf(rows: Row[]): Record<'state' | 'recipe' | 'host' | 'tag', string[]> {
  const distinct = (values: string[]) => [...new Set(values.filter(Boolean))].sort();
  return {
    state: distinct(rows.map((row) => row.state)),
    recipe: distinct(rows.filter((row) => row.kind === 'run').map((row) => row.name)),
    host: distinct(rows.map((row) => row.host)),
    tag: distinct(rows.flatMap((row) => row.tags)),
  };
}

/** What differs on purpose where these runs are compared: the host, if they ran on two that are known. */
export function factorOf(rows: Row[], ids: string[]): string {
  const hosts = new Set(rows.filter((row) => ids.includes(row.id) && row.host).map((row) => row.host));
  return hosts.size > 1 ? 'host' : '';
}

/** Reads a query from a URL. What is not understood is left out. */
export function fromUrl(search: string): Query {
  const from = new URLSearchParams(search);
  const text = (name: string) => from.get(name) ?? '';
  const sort = text('sort');
  return {
    search: text('q'),
    kind: text('kind'),
    state: text('state'),
    recipe: text('recipe'),
    host: text('host'),
    tag: text('tag'),
    sort: sort in SORTS ? (sort as Sort) : 'newest',
  };
}

/** Writes a query as the path of the list. */
export function toUrl(query: Query): string {
  const to = new URLSearchParams();
  const { search, sort, ...filters } = query;
  const parts = Object.entries({ q: search, ...filters, sort: sort === 'newest' ? '' : sort });
  parts.filter(([, value]) => value).forEach(([name, value]) => to.set(name, value));
  return to.size ? `${BASE}/?${to.toString()}` : `${BASE}/`;
}
