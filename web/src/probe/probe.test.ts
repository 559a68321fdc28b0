import { expect, it } from 'vitest';
import type { DiskPoint, DiskProbe, FsyncProbe, FsyncTest, LatencySummary, Transfers } from '../data/types';
import { depths, zones } from './disk';
import { ceilingForCommits, fsyncTables } from './fsync';

const latency = { us_mean: 1, us_p50: 1, us_p90: 1, us_p95: 1, us_p99: 1, us_p999: 1, us_max: 1 } satisfies LatencySummary;
const measured = (group: FsyncTest['group'], name: string, files: number, operations: number): FsyncTest => ({
  group,
  name,
  files,
  outcome: { measured: { operations, seconds: 2, latency } },
});

const fsync = {
  block_bytes: 8192,
  tests: [
    measured('concurrent', 'fdatasync', 4, 4000),
    measured('one-block', 'fdatasync', 1, 500),
    { group: 'one-block', name: 'fsync_writethrough', files: 1, outcome: { 'not-available': 'Linux has none' } },
  ],
} as unknown as FsyncProbe;

it('tests of fsync stand by comparison, in the order of pg_test_fsync', () => {
  expect(fsyncTables(fsync).map((table) => table.group)).toEqual(['one-block', 'concurrent']);
});

it('a rate is that of all writers together, and the time of one is what it waits', () => {
  const [one, concurrent] = fsyncTables(fsync);
  expect(one.rows[0]).toMatchObject({ name: 'fdatasync', perSecond: 250, usEach: 4000 });
  expect(concurrent.rows[0]).toMatchObject({ name: '4 files', perSecond: 2000, usEach: 2000 });
});

it('a test that is not available says why, and has no rate', () => {
  expect(fsyncTables(fsync)[0].rows[1]).toMatchObject({ perSecond: null, usEach: null, why: 'Linux has none' });
});

it('the ceiling for commits is the rate of fdatasync of one block', () => {
  expect(ceilingForCommits(fsync)).toBe(250);
  expect(ceilingForCommits({ ...fsync, tests: [] })).toBeNull();
});

const transfers = (iops: number) => ({ operations: 1, iops, bytes_per_second: iops, latency }) satisfies Transfers;
const point = (pattern: DiskPoint['pattern'], depth: number, offset: number, sides: Partial<DiskPoint>) =>
  ({ pattern, queue_depth: depth, offset, read: null, write: null, ...sides }) as DiskPoint;

const disk = {
  points: [
    point('read', 4, 100, { read: transfers(2) }),
    point('read', 4, 0, { read: transfers(1) }),
    point('randrw', 8, 0, { read: transfers(7), write: transfers(3) }),
  ],
} as unknown as DiskProbe;

it('zones stand in the order of the disk', () => {
  expect(zones(disk)).toEqual([
    { name: 'sequential read', rows: [{ at: 0, transfers: transfers(1) }, { at: 100, transfers: transfers(2) }] },
  ]);
});

it('a mix of reads and writes makes two curves', () => {
  expect(depths(disk).map((curve) => [curve.name, curve.rows[0].transfers.iops])).toEqual([
    ['70:30 mix, read', 7],
    ['70:30 mix, write', 3],
  ]);
});
