import { describe, expect, it } from 'vitest';
import { count, counted, duration, interval, milliseconds, NONE, percent, ratioInterval, seconds, significant, tick, times } from './format';

describe('numbers for people', () => {
  it('have three significant digits, as in the terminal', () => {
    const cases: [number, string][] = [
      [0, '0'],
      [0.00012, '1.2e-4'],
      [0.0123, '0.0123'],
      [0.4567, '0.457'],
      [0.9996, '1.00'],
      [9.996, '10.0'],
      [45.67, '45.7'],
      [99.96, '100'],
      [1_234_567.8, '1,234,568'],
      [-1234, '-1,234'],
      [-1.5e-16, '0'],
      [NaN, NONE],
      [Infinity, NONE],
    ];
    for (const [value, text] of cases) {
      expect(significant(value)).toBe(text);
    }
  });

  it('stay short where they are absurd', () => {
    expect(significant(1.7e300)).toBe('1.7e300');
    expect(count(1e300)).toBe('1.0e300');
    expect(tick(1e21)).toBe('1e21');
  });

  it('say that there is none', () => {
    expect([significant(null), times(undefined), milliseconds(null), percent(NaN), interval(null)]).toEqual(
      Array(5).fill(NONE),
    );
    expect(significant('7' as unknown as number)).toBe(NONE);
  });

  it('carry their units', () => {
    expect([duration(12), duration(1500), duration(2.5e6)]).toEqual(['12.0 µs', '1.50 ms', '2.50 s']);
    expect([seconds(5), seconds(0.25), seconds(300)]).toEqual(['5', '0.25', '300']);
    expect([percent(0.0234), percent(0.5), percent(0)]).toEqual(['2.3%', '50.0%', '0%']);
    expect([counted(1, 'round'), counted(2000, 'round')]).toEqual(['1 round', '2,000 rounds']);
    expect(interval([1200, 1300.4])).toBe('1,200–1,300');
  });

  it('bound the interval of a ratio by a factor of 1,000', () => {
    expect([ratioInterval(0.5, 1.6e68), ratioInterval(1e-9, null)]).toEqual(['0.500–> 1,000', `< 0.001–${NONE}`]);
  });

  it('have as few digits on an axis as tell ticks apart', () => {
    expect([0, 0.25, 2000, 12_000, 2.5e6].map(tick)).toEqual(['0', '0.25', '2,000', '12k', '2.5M']);
  });
});
