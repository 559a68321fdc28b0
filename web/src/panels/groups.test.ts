import { expect, it } from 'vitest';
import { pace } from './groups';

it('tells the pace of a group', () => {
  expect(pace({ rate: '500', think_time: null })).toBe('500 due/s');
  expect(pace({ rate: null, think_time: '40ms' })).toBe('thinks 40ms');
  expect(pace({ rate: null, think_time: null })).toBe('closed loop');
});
