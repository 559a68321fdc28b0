// Stages of a rate over time.
import type { StageView } from '../data/types';

/** Transactions due per second, `t` seconds after the opening; null without stages. */
export function dueAt(stages: StageView[], t: number): number | null {
  const length = stages.reduce((sum, stage) => sum + stage.seconds, 0);
  const at = length > 0 ? t % length : 0;
  const stage = stages.filter((s) => s.begin_s <= at).at(-1);
  if (!stage) {
    return null;
  }
  const isOne = stage.stages === 1;
  return isOne ? stage.from + ((stage.to - stage.from) * (at - stage.begin_s)) / stage.seconds : stage.due;
}

/** Formats seconds since the opening: `1:30`, `2:00:05`. */
export function clock(seconds: number): string {
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const two = (n: number) => String(n).padStart(2, '0');
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}
