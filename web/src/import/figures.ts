// Figures that were read in a report, as tables: each with its line, printed as the report prints it.
import type { Figure, PgbenchRun, Recognised, ReportTable, SysbenchRun } from '../data/types';
import { NONE } from '../format';

export interface FigureRow {
  cells: string[];
  /** Line in the report's file, from 1. */
  line: number | null;
}

export interface FigureTable {
  id: string;
  title: string;
  columns: { name: string; numeric: boolean }[];
  rows: FigureRow[];
}

/** A bar: one measured thing with its repeats. */
export interface Bar {
  label: string;
  value: number;
  repeats: number[];
}

/** Prints a figure with the digits that the report gave it. */
export function figureText(figure: Figure | null | undefined): string {
  if (!figure || typeof figure.value !== 'number' || !Number.isFinite(figure.value)) {
    return NONE;
  }
  const { value, half } = figure;
  const decimals = half > 0 ? Math.min(20, Math.max(0, Math.round(-Math.log10(2 * half)))) : 0;
  if (Math.abs(value) >= 1e15) {
    return value.toExponential();
  }
  const [whole, rest] = value.toFixed(decimals).split('.');
  const commas = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ',');
  return rest === undefined ? commas : `${commas}.${rest}`;
}

const text = (name: string) => ({ name, numeric: false });
const number = (name: string) => ({ name, numeric: true });

/** The tps of a report of pgbench: without connecting, where that is printed. */
export function tpsOf(run: PgbenchRun): Figure | null {
  return (
    run.tps_excluding ?? run.tps_without ?? run.tps_reconnecting ?? run.tps_bare ?? run.tps_including ?? null
  );
}

/** Names of reports: the words above them, with their line where several have the same. */
function namesOf(runs: PgbenchRun[]): string[] {
  return runs.map(({ label, line }) => {
    const alike = runs.filter((other) => other.label === label).length > 1;
    return !label ? `line ${line}` : alike ? `${label}, line ${line}` : label;
  });
}

function pgbench(runs: PgbenchRun[]): FigureTable {
  const names = namesOf(runs);
  return {
    id: 'pgbench',
    title: 'Reports of pgbench',
    columns: [
      text('report'),
      text('script'),
      number('scale'),
      number('clients'),
      number('threads'),
      number('duration s'),
      number('transactions'),
      number('failed'),
      number('latency ms'),
      number('± ms'),
      number('tps'),
    ],
    rows: runs.map((run, i) => ({
      line: run.line,
      cells: [
        names[i],
        [run.transaction_type, run.query_mode].filter(Boolean).join(', ') || NONE,
        figureText(run.scale),
        figureText(run.clients),
        figureText(run.threads),
        figureText(run.duration_s),
        figureText(run.transactions),
        figureText(run.failed),
        figureText(run.latency_average_ms),
        figureText(run.latency_stddev_ms),
        figureText(tpsOf(run)),
      ],
    })),
  };
}

/** Statement latencies: one row a statement, one column a report. */
function statements(runs: PgbenchRun[]): FigureTable {
  const known = runs.filter((run) => allStatements(run).length > 0);
  const texts = [...new Set(known.flatMap((run) => allStatements(run).map((s) => s.text)))];
  return {
    id: 'statements',
    title: 'Statement latencies, ms',
    columns: [text('statement'), ...namesOf(known).map(number)],
    rows: texts.map((text) => ({
      line: null,
      cells: [
        text,
        ...known.map((run) => {
          const found = allStatements(run).filter((s) => s.text === text);
          return found.length === 0 ? NONE : found.map((s) => figureText(s.latency_ms)).join(', ');
        }),
      ],
    })),
  };
}

function allStatements(run: PgbenchRun) {
  return [...(run.statements ?? []), ...(run.scripts ?? []).flatMap((script) => script.statements ?? [])];
}

function sysbench(runs: SysbenchRun[]): FigureTable {
  return {
    id: 'sysbench',
    title: 'Reports of sysbench',
    columns: [
      text('report'),
      number('threads'),
      number('time s'),
      number('transactions'),
      number('queries'),
      number('errors'),
      number('latency ms'),
      number('transactions/s'),
    ],
    rows: runs.map((run) => ({
      line: run.line,
      cells: [
        `line ${run.line}`,
        figureText(run.threads),
        figureText(run.total_time_s),
        figureText(run.transactions),
        figureText(run.queries),
        figureText(run.errors),
        figureText(run.latency_average_ms),
        figureText(run.per_second),
      ],
    })),
  };
}

function table(found: ReportTable, at: number): FigureTable {
  const rows = found.rows ?? [];
  const repeats = Math.max(0, ...rows.map((row) => row.repeats.length));
  const others = [...new Set(rows.flatMap((row) => row.others.map(([column]) => column)))].sort(
    (a, b) => a - b,
  );
  const has = (of: 'mean' | 'ratio' | 'share') => rows.some((row) => row[of]);
  const extra = (['mean', 'ratio', 'share'] as const).filter(has);
  return {
    id: `table-${at + 1}`,
    title: found.tps ? `Table of tps, line ${found.line}` : `Table, line ${found.line}`,
    columns: [
      text(''),
      ...Array.from({ length: repeats }, (_, i) => number(repeats === 1 ? 'value' : `repeat ${i + 1}`)),
      ...extra.map((name) => number(name === 'share' ? 'share %' : name)),
      ...others.map((column) => number(found.header?.[column] || `column ${column + 1}`)),
    ],
    rows: rows.map((row) => ({
      line: row.line,
      cells: [
        row.label,
        ...Array.from({ length: repeats }, (_, i) => figureText(row.repeats[i])),
        ...extra.map((name) => figureText(row[name])),
        ...others.map((column) => figureText(row.others.find(([at]) => at === column)?.[1])),
      ],
    })),
  };
}

/** Rows with named columns, which need not be alike. */
function named(
  id: string,
  title: string,
  first: string,
  rows: { label: string; line: number | null; columns: [string, Figure][] }[],
): FigureTable {
  const names = [...new Set(rows.flatMap((row) => row.columns.map(([name]) => name)))];
  return {
    id,
    title,
    columns: [text(first), ...names.map(number)],
    rows: rows.map((row) => ({
      line: row.line,
      cells: [row.label, ...names.map((name) => figureText(row.columns.find(([n]) => n === name)?.[1]))],
    })),
  };
}

/** Arranges all that was recognised; tables without a row are left out. */
export function figureTables(found: Partial<Recognised>): FigureTable[] {
  const runs = found.runs ?? [];
  const tables = [
    ...(found.tables ?? []).map(table),
    pgbench(runs),
    statements(runs),
    sysbench(found.sysbench ?? []),
    {
      id: 'fsync',
      title: 'Lines of pg_test_fsync',
      columns: [text('comparison'), text('method'), number('operations/s'), number('µs each')],
      rows: (found.fsync ?? []).map((line) => ({
        line: line.per_second.line,
        cells: [line.section, line.method, figureText(line.per_second), figureText(line.us)],
      })),
    },
    named(
      'cpu',
      'CPU by iostat, %',
      '',
      (found.cpus ?? []).map((cpu) => ({ label: `line ${cpu.line}`, line: cpu.line, columns: cpu.parts })),
    ),
    named(
      'devices',
      'Devices by iostat',
      'device',
      (found.devices ?? []).map((device) => ({
        label: device.device,
        line: device.columns[0]?.[1].line ?? null,
        columns: device.columns,
      })),
    ),
    {
      id: 'settings',
      title: 'Settings',
      columns: [text('setting'), text('value')],
      rows: (found.settings ?? []).map((s) => ({ line: s.line, cells: [s.name, s.value] })),
    },
    {
      id: 'storage',
      title: 'Facts on storage',
      columns: [text('fact'), text('words of the report')],
      rows: (found.storage ?? []).map((fact) => ({ line: fact.line, cells: [storageWhat(fact.what), fact.words] })),
    },
  ];
  return tables.filter((t) => t.rows.length > 0);
}

function storageWhat(what: unknown): string {
  if (typeof what === 'string') {
    return what.replace(/-/g, ' ');
  }
  const [name, value] = Object.entries(what ?? {})[0] ?? ['unknown', null];
  const detail = value && typeof value === 'object' ? Object.values(value).join(' = ') : String(value);
  return `${name.replace(/-/g, ' ')}: ${detail}`;
}

/** Measured things of the report with their tps: rows of tables, or else reports of programs. */
export function tpsBars(found: Partial<Recognised>): Bar[] {
  const rows = (found.tables ?? [])
    .filter((t) => t.tps)
    .flatMap((t) => t.rows)
    .flatMap((row): Bar[] => {
      const repeats = row.repeats.map((figure) => figure.value);
      const mean = repeats.length > 0 ? repeats.reduce((a, b) => a + b) / repeats.length : null;
      const value = mean ?? row.mean?.value ?? row.others[0]?.[1].value;
      return value === undefined ? [] : [{ label: row.label, value, repeats }];
    });
  if (rows.length > 0) {
    return rows;
  }
  const names = namesOf(found.runs ?? []);
  const runs = (found.runs ?? []).flatMap((run, i): Bar[] => {
    const tps = tpsOf(run);
    return tps ? [{ label: names[i], value: tps.value, repeats: [] }] : [];
  });
  const others = (found.sysbench ?? []).flatMap((run): Bar[] =>
    run.per_second ? [{ label: `line ${run.line}`, value: run.per_second.value, repeats: [] }] : [],
  );
  return [...runs, ...others];
}

/** pg_test_fsync's rates by comparison. */
export function fsyncBars(found: Partial<Recognised>): { section: string; bars: Bar[] }[] {
  const lines = found.fsync ?? [];
  return [...new Set(lines.map((line) => line.section))].map((section) => ({
    section,
    bars: lines
      .filter((line) => line.section === section)
      .map((line) => ({ label: line.method, value: line.per_second.value, repeats: [] })),
  }));
}
