// The numbers of a chart as a table, for screen readers and for copying.

export interface Numbers {
  columns: { name: string; unit?: string }[];
  rows: (string | number | null)[][];
}

/** Name of a column with its unit. */
export function heading(column: { name: string; unit?: string }): string {
  return column.unit ? `${column.name} (${column.unit})` : column.name;
}

// A spreadsheet takes a cell with such a beginning for a formula.
const FORMULA = /^[=+\-@\t\r]/;

function cell(value: string | number | null): string {
  if (value === null || value === undefined) {
    return '';
  }
  if (typeof value === 'number') {
    return String(value);
  }
  const text = value.replace(/[\t\r\n]+/g, ' ');
  return FORMULA.test(text) ? `'${text}` : text;
}

/** Writes numbers as lines of cells between tabs, which spreadsheets take. */
export function asTabs({ columns, rows }: Numbers): string {
  return [columns.map(heading), ...rows].map((row) => row.map(cell).join('\t')).join('\n');
}
