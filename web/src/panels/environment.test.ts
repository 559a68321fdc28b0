import { expect, it } from 'vitest';
import type { Environment, ServerView } from '../data/types';
import { groups, search } from './environment';

const machine = {
  title: 'Machine',
  rows: [
    { name: 'System', text: 'Debian, Linux 6.1', detail: false },
    { name: 'Sysctl', text: 'vm.swappiness = 60', detail: true },
  ],
  storages: [{ name: 'disk', rows: [{ name: 'Filesystem', text: 'ext4', detail: false }] }],
} satisfies Environment;

const server = {
  version: 'PostgreSQL 18.3 on x86_64-pc-linux-gnu, compiled by gcc',
  trials: [1, 2, 3],
  settings: [
    { name: 'shared_buffers', unit: '8kB', source: 'configuration file', value: '16384', values: [], shown: ['128MB'] },
    { name: 'synchronous_commit', unit: null, source: 'configuration file', value: null, values: [['on', [1, 2]], ['off', [3]]], shown: ['on', 'off'] },
    { name: 'work_mem', unit: 'kB', source: 'default', value: '4096', values: [], shown: ['4MB'] },
  ],
} as unknown as ServerView;

it('machine, storages and servers are groups of their own', () => {
  expect(groups([machine], [server]).map((group) => group.title)).toEqual([
    'Machine',
    'storage disk',
    'PostgreSQL 18.3, 3 trials',
  ]);
});

it('several sessions are told apart', () => {
  const titles = groups([machine, { ...machine, title: 'Session 2' }]).map((group) => group.title);
  expect(titles).toEqual(['Machine', 'Machine, storage disk', 'Session 2', 'Session 2, storage disk']);
});

it('a setting that varied shows its values with the trials of each; defaults are details', () => {
  const rows = groups([], [server])[0].rows;
  expect(rows[1]).toEqual({ name: 'shared_buffers', text: '128MB (configuration file)', detail: false });
  expect(rows[2].text).toBe('on (2 trials); off (1 trial)');
  expect(rows[3].detail).toBe(true);
});

it('a search finds details too, by all its words', () => {
  const all = groups([machine], [server]);
  expect(search(all, 'SWAPPINESS')).toEqual([
    { title: 'Machine', rows: [{ name: 'Sysctl', text: 'vm.swappiness = 60', detail: false }] },
  ]);
  expect(search(all, 'disk ext4').map((group) => group.title)).toEqual(['storage disk']);
  expect(search(all, 'nowhere')).toEqual([]);
  expect(search(all, '  ')).toBe(all);
});

it('missing parts leave nothing over', () => {
  expect(groups([{ title: 'x' } as unknown as Environment])).toEqual([]);
  expect(groups([], [{ version: 'PostgreSQL 18.3' } as ServerView])[0].rows).toHaveLength(1);
});
