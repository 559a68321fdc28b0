import { describe, expect, it } from 'vitest';
import { look, marker, MOST } from '../palette';
import { extent, linear, log, ticksAt } from './axis';
import { asTabs } from './numbers';
import { fileName } from './save';
import { arrow, cut, ratioAxis } from './strip';

describe('axes', () => {
  it('have ticks within what they show, no nearer than asked', () => {
    const axis = log([1, 1000], [0, 300], 40);
    expect(axis.ticks.length).toBeLessThanOrEqual(7);
    expect(axis.ticks[0].at).toBe(1);
    expect(linear([0, 97], [0, 300]).ticks.map((t) => t.at)).toEqual([0, 20, 40, 60, 80, 100]);
    expect(ticksAt([1, 2, 4, 1024], linear([0, 1024], [0, 300]).scale).map((t) => t.at)).toEqual([1, 1024]);
  });

  it('hold one value, none, and absurd ones', () => {
    expect(log([5, 5], [0, 100]).scale.domain()).toEqual([2.5, 10]);
    expect(extent([null, NaN])).toEqual([0, 1]);
    expect(log([0, 0], [0, 100]).ticks.every((t) => Number.isFinite(t.at))).toBe(true);
    expect(log([1e-300, 1e300], [0, 300]).ticks.length).toBeLessThanOrEqual(8);
  });
});

describe('an interval on a strip', () => {
  const spans = [{ value: 0.5, low: 0.001, high: 40 }, { value: 1.2, low: 1.1, high: 1.3 }];
  const axis = ratioAxis(spans, 0.02, 300);

  it('is cut where the axis ends, and says so', () => {
    const wide = cut(spans[0], axis);
    expect([wide?.cutLow, wide?.cutHigh]).toEqual([true, true]);
    expect([wide?.from, wide?.to]).toEqual(axis.scale.range());
    const narrow = cut(spans[1], axis);
    expect([narrow?.cutLow, narrow?.cutHigh]).toEqual([false, false]);
  });

  it('is none without ends, and open with one', () => {
    expect(cut({ low: null, high: null }, axis)).toBeNull();
    expect(cut({ low: 1, high: null }, axis)?.cutHigh).toBe(true);
  });

  it('ends in an arrow that points outwards', () => {
    expect(arrow(10, 5, 'left')).toBe('M10,5l6,-4v8Z');
    expect(arrow(10, 5, 'right')).toBe('M10,5l-6,-4v8Z');
  });
});

it('eight looks differ by colour, and again by dashes and marker', () => {
  const looks = Array.from({ length: MOST }, (_, i) => look(i));
  for (const key of ['colour', 'dash', 'shape'] as const) {
    expect(new Set(looks.map((l) => l[key])).size).toBe(MOST);
  }
  expect(new Set(looks.map((l) => marker(l.shape, 5))).size).toBe(MOST);
});

it('a copied table holds no formula and no line breaks', () => {
  const text = asTabs({ columns: [{ name: 'a' }, { name: 'b', unit: 'ms' }], rows: [['=cmd()', 1.5], ['x\ty\n', null]] });
  expect(text).toBe("a\tb (ms)\n'=cmd()\t1.5\nx y \t");
});

it('a file is named after its chart', () => {
  expect([fileName('p99 over <b>/..', 'svg'), fileName('…', 'png')]).toEqual(['p99-over-b.svg', 'chart.png']);
});
