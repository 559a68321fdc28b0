import { expect, it } from 'vitest';
import type { StageView } from '../data/types';
import { clock, dueAt } from './stages';

it('times within a window are minutes and seconds, with hours where there are any', () => {
  expect([0, 59, 60, 3599, 3600, 36_065].map(clock)).toEqual(['0:00', '0:59', '1:00', '59:59', '1:00:00', '10:01:05']);
});

it('what is due follows the stages, which begin anew', () => {
  const stages = [
    { stages: 1, begin_s: 0, seconds: 10, from: 5, to: 5, due: 5 },
    { stages: 1, begin_s: 10, seconds: 4, from: 5, to: 25, due: 15 },
    { stages: 3, begin_s: 14, seconds: 6, from: 1, to: 9, due: 4 },
  ] as unknown as StageView[];
  expect([0, 9.5, 10, 12, 14, 19.9, 20, 32].map((t) => dueAt(stages, t))).toEqual([5, 5, 5, 15, 4, 4, 5, 15]);
  expect(dueAt([], 3)).toBeNull();
});
