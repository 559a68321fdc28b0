import { describe, expect, it } from 'vitest';
import type { CrashView, FaultView, Round } from '../data/types';
import { byWeight, findRound, firstFailure, grid, meaning, roundKey, shownVerdict } from './grid';

const round = (number: number, aim: string, verdict: string) => ({ number, aim, verdict, checks: [] }) as unknown as Round;
const fault = (name: string, planted: boolean, each: Round[]) => ({ fault: name, planted, each }) as unknown as FaultView;
const session = (...faults: FaultView[]) => ({ faults }) as unknown as CrashView;

const power = fault('power', false, [
  round(1, 'after-checkpoint', 'pass'),
  round(2, 'load', 'FAIL (lost)'),
  round(3, 'load', 'pass'),
]);
const lie = fault('emulated-lie', true, [round(1, 'load', 'FAIL (lost)')]);

describe('the grid of rounds', () => {
  it('has a column for each aim that occurred, in the order of the aims', () => {
    const { columns, rows } = grid(session(power, lie));
    expect(columns.map((c) => c.aim)).toEqual(['load', 'after-checkpoint']);
    expect(rows[0].cells.map((cell) => cell.map((r) => r.number))).toEqual([[2, 3], [1]]);
    expect(rows[1].cells.map((cell) => cell.length)).toEqual([1, 0]);
  });

  it('keeps a round whose aim is of a later version', () => {
    const { columns } = grid(session(fault('power', false, [round(1, 'full-moon', 'pass')])));
    expect(columns).toEqual([{ aim: 'full-moon', heading: 'full-moon' }]);
  });

  it('is empty for a session without faults', () => {
    expect(grid({} as CrashView)).toEqual({ columns: [], rows: [] });
  });
});

describe('rounds', () => {
  it('that failed as their fault is meant to are shown as planted, and others as failures', () => {
    expect(shownVerdict(lie.each[0], true)).toBe('as planted (lost)');
    expect(shownVerdict(power.each[1], false)).toBe('FAIL (lost)');
    expect(shownVerdict(power.each[0], true)).toBe('pass');
  });

  it('are found by their address', () => {
    const all = [session(lie), session(power)];
    const key = roundKey(1, 'power', power.each[2]);
    expect(key).toBe('1.power.3');
    expect(findRound(all, key)?.round).toBe(power.each[2]);
    expect(findRound(all, 'none')).toBeNull();
    expect(findRound(all, null)).toBeNull();
  });

  it('a planted failure is not the first failure', () => {
    expect(firstFailure([session(lie)])).toBeNull();
    expect(firstFailure([session(lie, power)])).toBe('0.power.2');
  });
});

it('checks that failed or could not run stand before those that passed', () => {
  const checks = (['passed', 'not-applicable', 'failed', 'could-not-run'] as const).map((outcome) => ({ name: outcome, outcome, found: '' }));
  expect(byWeight(checks).map((c) => c.outcome)).toEqual(['failed', 'could-not-run', 'not-applicable', 'passed']);
});

it('every verdict has a meaning', () => {
  for (const verdict of ['pass', 'bounded-loss', 'as planted (lost)', 'unknown', 'invalid', 'FAIL (corrupt)']) {
    expect(meaning(verdict)).not.toBe('');
  }
  expect(meaning('of a later version')).toBe('');
});
