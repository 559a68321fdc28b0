// Formats numbers for people, as `pgdyno_text::format` does: three significant digits, commas
// between thousands, `–` where there is no number.

export const NONE = '–';

type Maybe = number | null | undefined;

/** Below it (absolute) a figure is a rounding error of 0. */
const ZERO = 1e-9;

function grouped(digits: string): string {
  const [whole, rest] = digits.split('.');
  const commas = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ',');
  return rest === undefined ? commas : `${commas}.${rest}`;
}

/** Formats with three significant digits. */
export function significant(value: Maybe): string {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    return NONE;
  }
  const size = Math.abs(value);
  if (size < ZERO) {
    return '0';
  }
  if (size < 0.0005 || size >= 1e15) {
    return value.toExponential(1).replace('e+', 'e');
  }
  const decimals = size < 0.0995 ? 4 : size < 0.9995 ? 3 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return grouped(value.toFixed(decimals));
}

/** Formats a rate such as tps, without a unit. */
export const rate = significant;

/** Formats a ratio: `1.46×`. */
export function times(value: Maybe): string {
  const text = significant(value);
  return text === NONE ? NONE : `${text}×`;
}

function bound(value: Maybe): string {
  if (typeof value === 'number' && value > 1000) {
    return '> 1,000';
  }
  return typeof value === 'number' && value > 0 && value < 0.001 ? '< 0.001' : significant(value);
}

/** Formats the interval of a ratio: what lies beyond a factor of 1,000 says no more than that. */
export function ratioInterval(low: Maybe, high: Maybe): string {
  return `${bound(low)}–${bound(high)}`;
}

/** Formats microseconds as milliseconds, without a unit. */
export function milliseconds(us: Maybe): string {
  return significant(typeof us === 'number' ? us / 1000 : null);
}

/** Formats microseconds with the unit that suits them. */
export function duration(us: Maybe): string {
  if (typeof us !== 'number' || !Number.isFinite(us)) {
    return NONE;
  }
  const size = Math.abs(us);
  if (size < 1000) {
    return `${significant(us)} µs`;
  }
  return size < 1e6 ? `${significant(us / 1000)} ms` : `${significant(us / 1e6)} s`;
}

/** Formats seconds, without a unit and without trailing zeros. */
export function seconds(value: Maybe): string {
  const text = significant(value);
  return text.includes('.') && !text.includes('e') ? text.replace(/\.?0+$/, '') : text;
}

/** Formats a share of 1 as a percentage. */
export function percent(share: Maybe): string {
  if (typeof share !== 'number' || !Number.isFinite(share)) {
    return NONE;
  }
  const value = share * 100;
  return Math.abs(value) < 10 && value !== 0 ? `${value.toFixed(1)}%` : `${significant(value)}%`;
}

/** Formats a count. */
export function count(value: Maybe): string {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    return NONE;
  }
  return Math.abs(value) >= 1e15 ? significant(value) : grouped(value.toFixed(0));
}

/** Formats a count with its noun: `1 socket`, `2 sockets`. */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** Formats an interval: `1,200–1,300`. */
export function interval(ends: readonly [Maybe, Maybe] | null | undefined, unit = ''): string {
  return ends ? `${significant(ends[0])}–${significant(ends[1])}${unit}` : NONE;
}

/** Formats a tick of an axis: as few digits as tell it from its neighbours. */
export function tick(value: number): string {
  if (value === 0) {
    return '0';
  }
  const size = Math.abs(value);
  if (size >= 1e15 || size < 1e-4) {
    return value.toExponential(0).replace('e+', 'e');
  }
  if (size >= 1e6) {
    return `${Number((value / 1e6).toPrecision(6))}M`;
  }
  return size >= 1e4
    ? `${Number((value / 1e3).toPrecision(6))}k`
    : grouped(String(Number(value.toPrecision(6))));
}
