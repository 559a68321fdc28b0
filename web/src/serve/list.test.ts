import { describe, expect, it } from 'vitest';
import type { RunRow } from '../data/types';
import { choicesOf, EVERYTHING, factorOf, found, fromUrl, rowsOf, toUrl } from './list';

const run = (id: string, change: Partial<RunRow> = {}): RunRow => ({
  id,
  recipe: 'quickstart',
  question: null,
  hosts: [],
  started_at: `2026-01-0${id}T00:00:00Z`,
  state: 'completed',
  trials_done: 1,
  trials_planned: 1,
  attempts_failed: 0,
  not_crashed: 0,
  ad_hoc: false,
  host: 'one',
  badge: 'answered',
  headline: null,
  spark: [],
  note: '',
  tags: [],
  is_live: false,
  ...change,
});
const rows = rowsOf({
  pending: 0,
  runs: [
    run('1', { is_live: true, state: 'running' }),
    run('2', { recipe: 'ssd', host: 'two', note: 'New Cable', tags: ['lab', 'slow disk'] }),
    run('3', { headline: 'xfs is ahead', state: 'failed', ad_hoc: true }),
  ],
  others: [{ id: 'p', kind: 'probe', name: '/mnt', run: null, started_at: '2026-01-09T00:00:00Z', state: 'completed', note: '', tags: [] }],
});
const ids = (change: Partial<typeof EVERYTHING>) => found(rows, { ...EVERYTHING, ...change }).map((row) => row.id);

describe('the list', () => {
  it('compares runs of two hosts by host', () => {
    expect(factorOf(rows, ['1', '2'])).toBe('host');
    expect(factorOf(rows, ['1', '3'])).toBe('');
  });

  it('does not take a host that is not known yet for another one', () => {
    const unknown = rowsOf({ pending: 1, runs: [run('1'), run('2', { host: null })], others: [] });
    expect(factorOf(unknown, ['1', '2'])).toBe('');
  });

  it('has live runs on top, then the newest', () => {
    expect(ids({})).toEqual(['1', 'p', '3', '2']);
    expect(ids({ sort: 'oldest' })).toEqual(['1', '2', '3', 'p']);
  });

  it('is searched in all texts, whatever their case', () => {
    expect(ids({ search: 'cable new' })).toEqual(['2']);
    expect(ids({ search: 'XFS' })).toEqual(['3']);
    expect(ids({ search: 'slow' })).toEqual(['2']);
    expect(ids({ search: 'ad hoc' })).toEqual(['3']);
    expect(ids({ search: 'nowhere' })).toEqual([]);
  });

  it('is narrowed by kind, state, recipe, host and tag together', () => {
    expect(ids({ kind: 'probe' })).toEqual(['p']);
    expect(ids({ state: 'live' })).toEqual(['1']);
    expect(ids({ recipe: 'ssd', host: 'two', tag: 'slow disk' })).toEqual(['2']);
    expect(ids({ recipe: 'ssd', host: 'one' })).toEqual([]);
  });

  it('offers what there is', () => {
    expect(choicesOf(rows)).toEqual({
      state: ['completed', 'failed', 'live'],
      recipe: ['quickstart', 'ssd'],
      host: ['one', 'two'],
      tag: ['lab', 'slow disk'],
    });
  });

  it('keeps what is looked for in the URL', () => {
    const query = { ...EVERYTHING, search: 'a&b=c', tag: 'slow disk', sort: 'recipe' as const };
    expect(fromUrl(toUrl(query).slice(1))).toEqual(query);
    expect(toUrl(EVERYTHING)).toBe('/');
    expect(fromUrl('?sort=<b>').sort).toBe('newest');
  });
});
