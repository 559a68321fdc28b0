// Scales with ticks that fit their length.
import { scaleLinear, scaleLog, type ScaleContinuousNumeric } from 'd3-scale';
import { tick as text } from '../format';

export interface Tick {
  at: number;
  text: string;
}

export interface Axis {
  scale: ScaleContinuousNumeric<number, number>;
  ticks: Tick[];
  log: boolean;
}

type Pair = [number, number];

/** Beyond it (absolute) the length of an axis would be no number. */
const MOST = 1e300;

function bounded(value: number): number {
  return Math.min(MOST, Math.max(-MOST, value));
}

/** Finite numbers of `values`. */
export function finite(values: (number | null | undefined)[]): number[] {
  return values.filter((v): v is number => typeof v === 'number' && Number.isFinite(v));
}

/** Smallest and largest of `values`; `fallback` without any. */
export function extent(values: (number | null | undefined)[], fallback: Pair = [0, 1]): Pair {
  let [low, high] = [Infinity, -Infinity];
  for (const value of finite(values)) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low <= high ? [bounded(low), bounded(high)] : fallback;
}

/** Linear axis over `domain`, rounded outwards. `least` is the space of a tick in pixels. */
export function linear(domain: Pair, range: Pair, least = 56, nice = true): Axis {
  const [from, to] = [bounded(domain[0]), bounded(domain[1])];
  const [low, high] = from === to ? [from, from + Math.max(1, Math.abs(from) * 0.01)] : [from, to];
  const count = Math.max(2, Math.floor(Math.abs(range[1] - range[0]) / least));
  const scale = scaleLinear().domain([low, high]).range(range).clamp(true);
  if (nice) {
    scale.nice(count);
  }
  return { scale, log: false, ticks: scale.ticks(count).map((at) => ({ at, text: text(at) })) };
}

/** Logarithmic axis over the positive part of `domain`. */
export function log(domain: Pair, range: Pair, least = 40): Axis {
  const high = domain[1] > 0 ? domain[1] : 1;
  const low = domain[0] > 0 ? Math.min(domain[0], high) : high / 10;
  const [from, to] = low === high ? [low / 2, high * 2] : [low, high];
  const scale = scaleLog().domain([from, to]).range(range).clamp(true);
  const room = Math.max(2, Math.floor(Math.abs(range[1] - range[0]) / least));
  for (const digits of [[1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]) {
    const ticks = decades(from, to, digits);
    if (ticks.length <= room && ticks.length > 0) {
      return { scale, log: true, ticks };
    }
  }
  const ticks = decades(from, to, [1]);
  const step = Math.ceil(ticks.length / room);
  return { scale, log: true, ticks: ticks.filter((_, i) => i % step === 0) };
}

function decades(from: number, to: number, digits: number[]): Tick[] {
  const out: Tick[] = [];
  for (let e = Math.floor(Math.log10(from)); e <= Math.ceil(Math.log10(to)); e += 1) {
    for (const digit of digits) {
      const at = Number(`${digit}e${e}`);
      if (at >= from * 0.999 && at <= to * 1.001) {
        out.push({ at, text: text(at) });
      }
    }
  }
  return out;
}

/** Ticks at `values` themselves, leaving out those nearer than `least` pixels to the one before. */
export function ticksAt(values: number[], scale: Axis['scale'], least = 34): Tick[] {
  let last = -Infinity;
  return [...new Set(values)]
    .sort((a, b) => a - b)
    .filter((at) => {
      const far = Math.abs(scale(at) - last) >= least;
      last = far ? scale(at) : last;
      return far;
    })
    .map((at) => ({ at, text: text(at) }));
}
