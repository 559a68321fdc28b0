// The document that pgdyno writes into a page, and the views in it.
//
// Keys are those of the Rust views in `crates/results/src/analysis/view`: keys are only ever added.
// Times are seconds since the trial's window opened, latencies microseconds, unless a name says else.

export * from './types/page';
export * from './types/run';
export * from './types/trial';
export * from './types/crash';
export * from './types/compare';
export * from './types/facts';
export * from './types/import';
export * from './types/probe';
