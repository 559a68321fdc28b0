// Figures of the fsync probe, arranged for charts and tables.
import type { FsyncProbe, FsyncTest, LatencySummary } from '../data/types';

export interface FsyncRow {
  name: string;
  files: number;
  /** Operations per second of all writers together; null where the test was not available. */
  perSecond: number | null;
  /** Time of one operation as a writer sees it (microseconds). */
  usEach: number | null;
  latency: LatencySummary | null;
  /** Why it is not available. */
  why: string | null;
}

export interface FsyncTable {
  group: FsyncTest['group'];
  title: string;
  /** How to read it. */
  lead: string;
  rows: FsyncRow[];
}

const ORDER: FsyncTest['group'][] = [
  'one-block',
  'two-blocks',
  'open-sync-sizes',
  'other-descriptor',
  'not-synced',
  'concurrent',
];

function title(group: FsyncTest['group'], kilobytes: number): string {
  const titles: Record<FsyncTest['group'], string> = {
    'one-block': `One ${kilobytes} kB write`,
    'two-blocks': `Two ${kilobytes} kB writes`,
    'open-sync-sizes': 'open_sync by size',
    'other-descriptor': 'Another descriptor',
    'not-synced': 'Not flushed',
    concurrent: 'Concurrent writers',
  };
  return titles[group] ?? String(group);
}

function lead(group: FsyncTest['group'], kilobytes: number): string {
  const leads: Record<FsyncTest['group'], string> = {
    'one-block': "What a commit waits for, by wal_sync_method. Linux's default is fdatasync.",
    'two-blocks': 'By wal_sync_method.',
    'open-sync-sizes': '16 kB through open_sync, in writes of different sizes, each durable by itself.',
    'other-descriptor': 'If the times are alike, fsync covers what another descriptor wrote.',
    'not-synced': `${kilobytes} kB writes that nothing flushes.`,
    concurrent: `A file each, ${kilobytes} kB and fdatasync. Rates are those of all writers together, latencies those of each.`,
  };
  return leads[group] ?? '';
}

function row(test: FsyncTest): FsyncRow {
  const measured = 'measured' in test.outcome ? test.outcome.measured : null;
  const perSecond =
    measured === null ? null : measured.seconds > 0 ? measured.operations / measured.seconds : 0;
  return {
    name: test.group === 'concurrent' ? `${test.files} ${test.files === 1 ? 'file' : 'files'}` : test.name.trim(),
    files: test.files,
    perSecond,
    usEach: perSecond === null || perSecond === 0 ? null : (test.files * 1e6) / perSecond,
    latency: measured?.latency ?? null,
    why: 'not-available' in test.outcome ? test.outcome['not-available'] : null,
  };
}

/** Arranges the tests by comparison, in pg_test_fsync's order. */
export function fsyncTables(probe: FsyncProbe): FsyncTable[] {
  const groups = [...new Set([...ORDER, ...probe.tests.map((test) => test.group)])];
  return groups
    .map((group) => ({
      group,
      title: title(group, probe.block_bytes / 1024),
      lead: lead(group, probe.block_bytes / 1024),
      rows: probe.tests.filter((test) => test.group === group).map(row),
    }))
    .filter((table) => table.rows.length > 0);
}

/** Most commits per second that one client can make durable: the rate of fdatasync of one block. */
export function ceilingForCommits(probe: FsyncProbe): number | null {
  const tests = probe.tests.filter((t) => t.group === 'one-block' && t.name === 'fdatasync');
  return tests.length > 0 ? row(tests[0]).perSecond : null;
}
