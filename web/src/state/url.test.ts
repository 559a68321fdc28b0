import { expect, it } from 'vitest';
import { hash, NOTHING, parse } from './url';

it('choices are the same after a way through the URL', () => {
  const choices = {
    ...NOTHING,
    at: 'time',
    slots: [0, null, 5],
    baseline: 2,
    trial: 7,
    under: 8,
    brush: [1.5, 3] as [number, number],
    focus: 'wait:IO:WALSync',
    filter: 'clients=8 on',
  };
  expect(parse(hash(choices))).toEqual(choices);
});

it('defaults stay out of the URL', () => {
  expect(hash(NOTHING)).toBe('#');
  expect(parse('')).toEqual(NOTHING);
});

it('what is not understood is left at its default', () => {
  const found = parse('#at=<img>&base=-1&trial=1e9&brush=9-3&show=a.b&under=x');
  expect(found).toEqual({ ...NOTHING, slots: [null, null] });
});
