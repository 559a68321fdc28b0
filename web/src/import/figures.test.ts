import { expect, it } from 'vitest';
import type { Figure, PgbenchRun, Recognised } from '../data/types';
import { figureTables, figureText, fsyncBars, tpsBars, tpsOf } from './figures';

const figure = (value: number, half = 0, line = 1): Figure => ({ value, half, line });
const run = (label: string | null, line: number, tps: number) =>
  ({ label, line, statements: [], scripts: [], tps_excluding: figure(tps, 0.0000005), tps_including: figure(1) }) as unknown as PgbenchRun;

it('a figure is printed with the digits that the report gave it', () => {
  expect(figureText(figure(7530.676229, 0.0000005))).toBe('7,530.676229');
  expect(figureText(figure(100, 0.5))).toBe('100');
  expect(figureText(figure(46.4, 0.005))).toBe('46.40');
  expect(figureText(figure(54221472))).toBe('54,221,472');
});

it('absurd figures are printed without an error', () => {
  expect(figureText(null)).toBe('–');
  expect(figureText(figure(Number.NaN))).toBe('–');
  expect(figureText(figure(1e300))).toBe('1e+300');
  expect(figureText(figure(1, 1e-300))).toBe('1.00000000000000000000');
});

it('tps is that without connecting, where the report has it', () => {
  expect(tpsOf(run(null, 1, 5))?.value).toBe(5);
  expect(tpsOf({ ...run(null, 1, 5), tps_excluding: null })?.value).toBe(1);
});

it('reports with one heading are told apart by their lines', () => {
  const bars = tpsBars({ runs: [run('results', 3, 1), run('results', 9, 2), run(null, 20, 3)] });
  expect(bars.map((bar) => bar.label)).toEqual(['results, line 3', 'results, line 9', 'line 20']);
});

const table = {
  line: 7,
  header: ['fs', 'tps'],
  tps: true,
  rows: [{ label: 'ext4', line: 8, repeats: [figure(100), figure(110)], mean: figure(105), ratio: null, share: null, others: [] }],
};

it('rows of a table of tps come before the reports that they summarise', () => {
  const found = { tables: [table], runs: [run('ext4', 30, 99)] } as unknown as Recognised;
  expect(tpsBars(found)).toEqual([{ label: 'ext4', value: 105, repeats: [100, 110] }]);
});

it('tables without a row are left out', () => {
  expect(figureTables({})).toEqual([]);
  const [first] = figureTables({ tables: [table] } as unknown as Recognised);
  expect(first.columns.map((column) => column.name)).toEqual(['', 'repeat 1', 'repeat 2', 'mean']);
  expect(first.rows).toEqual([{ line: 8, cells: ['ext4', '100', '110', '105'] }]);
});

it('lines of pg_test_fsync stand by comparison', () => {
  const line = (section: string, method: string) => ({ section, method, per_second: figure(9), us: null });
  const bars = fsyncBars({ fsync: [line('one', 'a'), line('two', 'b'), line('one', 'c')] });
  expect(bars.map((group) => [group.section, group.bars.map((bar) => bar.label)])).toEqual([
    ['one', ['a', 'c']],
    ['two', ['b']],
  ]);
});
