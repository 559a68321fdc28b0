// The documents of pages and of the server, as Rust's types give them, and names for parts of them.
//
// Times are seconds since the trial's window opened, latencies microseconds, unless a name says else.
import type { Api, LatencyView, LiveDocument } from './types/api';

export type * from './types/api';

/** Document of the page of one result. */
export type PageDocument = Api['/api/page/{id}'] | Api['/api/compare'];
export type PageKind = PageDocument['kind'];

/** A run as its records have it so far. */
export type LiveState = Omit<LiveDocument, 'has_died'>;

/** Bounds of an interval. */
export type Interval = [number, number];
/** A percentile with an interval of its own. */
export type Percentile = keyof Pick<LatencyView, 'p50' | 'p95' | 'p99'>;

export const PAGE_SCHEMA = 'pgdyno.page/1';
