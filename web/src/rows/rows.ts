// Where things stand in a chart of rows: one row for each measured thing, its name at the left.

export interface RowsLayout {
  /** Left and right end of the axis (pixels). */
  range: [number, number];
  /** Height of a row (pixels). */
  row: number;
  /** Whether names stand above their rows, for lack of width. */
  above: boolean;
  /** Characters that fit into a name. */
  fits: number;
  height: number;
}

const TOP = 6;
const BOTTOM = 44;
const CHARACTER = 6.8;

/** Lays out `labels` in `width`; `right` is kept free at the right end, for values. */
export function layout(labels: string[], width: number, right: number): RowsLayout {
  const above = width < 560;
  const longest = Math.max(4, ...labels.map((label) => label.length)) * CHARACTER + 16;
  const left = above ? 8 : Math.min(longest, width * 0.36);
  const row = above ? 44 : 30;
  return {
    range: [left, Math.max(left + 60, width - right)],
    row,
    above,
    fits: Math.max(4, Math.floor((above ? width - 8 : left - 14) / CHARACTER)),
    height: TOP + labels.length * row + BOTTOM,
  };
}

/** Height at which the middle of row `i` stands. */
export function middle({ row, above }: RowsLayout, i: number): number {
  return TOP + i * row + (above ? row * 0.7 : row / 2);
}

/** Shortens a name to `fits` characters; its end tells alike names apart, so the middle goes. */
export function shortened(label: string, fits: number): string {
  const characters = [...label];
  if (characters.length <= fits) {
    return label;
  }
  const tail = Math.floor((fits - 1) / 2);
  return `${characters.slice(0, fits - 1 - tail).join('')}…${tail > 0 ? characters.slice(-tail).join('') : ''}`;
}
