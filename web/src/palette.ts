// Colour means treatment, and nothing else. A marker's shape and a line's dashes say it a second
// time, for readers who see no colour and for prints in black.
//
// Waits are greys with one accent; verdicts are told apart by sign and outline.

/** Treatments that are drawn at once, at most. */
export const MOST = 8;

export type Shape =
  | 'circle'
  | 'square'
  | 'triangle'
  | 'diamond'
  | 'triangle-down'
  | 'cross'
  | 'star'
  | 'plus';

export interface Look {
  /** Name of the custom property that holds the colour, which follows light and dark. */
  colour: string;
  /** `stroke-dasharray`; empty for a solid line. */
  dash: string;
  shape: Shape;
}

const DASHES = ['', '7 3', '2 3', '9 3 2 3', '5 2', '12 4', '1 4', '10 3 2 3 2 3'];
const SHAPES: Shape[] = [
  'circle',
  'square',
  'triangle',
  'diamond',
  'triangle-down',
  'cross',
  'star',
  'plus',
];

/** Look of the treatment in `slot` (0 to 7). */
export function look(slot: number): Look {
  const i = ((slot % MOST) + MOST) % MOST;
  return { colour: `var(--treatment-${i + 1})`, dash: DASHES[i], shape: SHAPES[i] };
}

/** Look of what belongs to no drawn treatment. */
export const UNSELECTED: Look = { colour: 'var(--ink-faint)', dash: '', shape: 'circle' };

/** SVG path of a marker around 0,0; `r` is its half width. */
export function marker(shape: Shape, r: number): string {
  const d = r * 1.15;
  switch (shape) {
    case 'circle':
      return `M${-r},0A${r},${r} 0 1,0 ${r},0A${r},${r} 0 1,0 ${-r},0Z`;
    case 'square':
      return `M${-r * 0.9},${-r * 0.9}H${r * 0.9}V${r * 0.9}H${-r * 0.9}Z`;
    case 'triangle':
      return `M0,${-d}L${d},${d * 0.8}H${-d}Z`;
    case 'triangle-down':
      return `M0,${d}L${d},${-d * 0.8}H${-d}Z`;
    case 'diamond':
      return `M0,${-d * 1.15}L${d},0L0,${d * 1.15}L${-d},0Z`;
    case 'plus': {
      const w = r * 0.4;
      return `M${-w},${-d}H${w}V${-w}H${d}V${w}H${w}V${d}H${-w}V${w}H${-d}V${-w}H${-w}Z`;
    }
    case 'cross': {
      const w = r * 0.42;
      const e = d * 0.95;
      return (
        `M${-e},${-e + w}L${-e + w},${-e}L0,${-w}L${e - w},${-e}L${e},${-e + w}L${w},0` +
        `L${e},${e - w}L${e - w},${e}L0,${w}L${-e + w},${e}L${-e},${e - w}L${-w},0Z`
      );
    }
    case 'star': {
      const points = Array.from({ length: 10 }, (_, i) => {
        const a = (Math.PI * i) / 5 - Math.PI / 2;
        const l = i % 2 === 0 ? d * 1.2 : d * 0.5;
        return `${(Math.cos(a) * l).toFixed(2)},${(Math.sin(a) * l).toFixed(2)}`;
      });
      return `M${points.join('L')}Z`;
    }
  }
}

/** Greys for parts of a stack, the largest part darkest against the page. */
export function grey(index: number): string {
  return `var(--grey-${(index % 6) + 1})`;
}

/** Greys of heat maps: 0 is next to the page's own colour, 1 is ink. */
export const HEAT_STEPS = 8;
