import { expect, it } from 'vitest';
import { layout, middle, shortened } from './rows';

it('names stand above their rows where there is no room beside them', () => {
  expect(layout(['a', 'b'], 360, 20).above).toBe(true);
  expect(layout(['a', 'b'], 900, 20).above).toBe(false);
});

it('rows follow each other within the height', () => {
  const at = layout(['a', 'b', 'c'], 900, 20);
  expect(middle(at, 1) - middle(at, 0)).toBe(at.row);
  expect(middle(at, 2)).toBeLessThan(at.height - 44);
});

it('a long name loses its middle and keeps both ends', () => {
  expect(shortened('workload=tpcb-like clients=16', 15)).toBe('workloa…ents=16');
  expect(shortened('short', 15)).toBe('short');
  expect(shortened('𝒳𝒴𝒵𝒳𝒴𝒵', 5)).toBe('𝒳𝒴…𝒴𝒵');
});

it('the axis keeps room however long the names are', () => {
  const [left, right] = layout(['x'.repeat(5000)], 700, 76).range;
  expect(right - left).toBeGreaterThan(200);
});
