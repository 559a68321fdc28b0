import { expect, test } from 'vitest';
import { filesystemFacts, mountCells } from './filesystems';

const view = { rounds: 2, mount_ms: 15.04, fsck_ms: 300, complaints: 0, words: [] };

test('mount and fsck have cells, and a complaint shows', () => {
  expect(mountCells(view)).toEqual(['15.0', '300']);
  expect(mountCells({ ...view, complaints: 1 })).toEqual(['15.0', '300 (complains)']);
  expect(mountCells({ ...view, fsck_ms: null })).toEqual(['15.0', '–']);
  expect(mountCells(undefined)).toEqual(['–', '–']);
});

test('a round tells of each of its filesystems', () => {
  const facts = filesystemFacts([
    { storage: 'data', filesystem: 'ext4', mount_ms: 12, fsck: { outcome: 'clean', command: 'e2fsck -f -n', ms: 40 } },
    { storage: 'wal', filesystem: 'nilfs2', mount_ms: 5, fsck: { outcome: 'not-run', why: 'no check' } },
  ]);
  expect(facts.map(([name]) => name)).toEqual(['Mount of data', 'Fsck of data', 'Mount of wal', 'Fsck of wal']);
  expect(facts[1]?.[1]).toContain('nothing wrong');
  expect(facts[3]?.[1]).toBe('not run: no check');
});

test('a complaint tells its status and what was said', () => {
  const fsck = { outcome: 'complained' as const, command: 'xfs_repair -n', ms: 40, status: 1, said: 'bad magic' };
  const facts = filesystemFacts([{ storage: 'data', filesystem: 'xfs', mount_ms: 12, fsck }]);
  expect(facts[1]).toEqual(['Fsck', expect.stringContaining('status 1: bad magic')]);
});
