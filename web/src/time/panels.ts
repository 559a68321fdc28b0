// Charts over a trial's time: what is drawn in each, in which look. Pure.
import type { Heat, Reduced, Chart, StageView, TrialDetail } from '../data/types';
import { grey, type Look } from '../palette';
import { dueAt } from '../panels/stages';
import { ends, within } from './intervals';

export interface Line extends Reduced {
  name: string;
  colour: string;
  dash: string;
  /** Whether it belongs to the trial laid under. */
  isUnder?: boolean;
}

export interface Panel {
  id: string;
  title: string;
  unit: string;
  kind: 'lines' | 'stack' | 'heat';
  note?: string;
  isTall?: boolean;
  isDetail?: boolean;
  /** Begin of each bucket, and the end of the last. */
  t: number[];
  lines: Line[];
  /** The trial laid under, on its own times. */
  under?: { t: number[]; lines: Line[] };
  heat?: Heat;
}

/** Backends that wait for the load generator: the server has nothing to do for them. */
const IDLE = 'Client:ClientRead';
const DASHES = ['', '6 3', '2 3', '9 3 2 3'];
const ORDER = [
  'wait_events',
  'device_operations',
  'device_throughput',
  'device_latency',
  'device_queue',
  'device_busy',
  'wal',
  'cpu',
  'generator_cpu',
  'memory',
];

function edges(t: number[], lengths?: number[]): number[] {
  const to = ends(t, lengths);
  return t.length ? [...t, to[to.length - 1]] : [];
}

function tpsLines(detail: TrialDetail, look: Look, isUnder: boolean): Line[] {
  return [{ name: isUnder ? 'tps of the trial laid under' : 'tps', ...detail.series.tps, colour: look.colour, dash: isUnder ? '4 3' : '', isUnder }];
}

/** What was due at the middle of each bucket, where the rate has stages. */
function dueLines({ series }: TrialDetail, stages: StageView[]): Line[] {
  const due = series.t_s.map((t, i) => dueAt(stages, t + series.length_s[i] / 2));
  return stages.length ? [{ name: 'due', mean: due, colour: grey(0), dash: '2 3' }] : [];
}

function milliseconds(values: (number | null)[]): (number | null)[] {
  return values.map((v) => (v === null ? null : v / 1000));
}

function latencyPanel(detail: TrialDetail, look: Look): Panel {
  const { series, heat } = detail;
  const percentile = (name: 'p50' | 'p95' | 'p99', dash: string, colour: string): Line => ({
    name,
    mean: milliseconds(series[name]),
    colour,
    dash,
  });
  const t = edges(series.t_s, series.length_s);
  if (heat && heat.rows.length) {
    const lines = [percentile('p50', '', look.colour), percentile('p99', '4 3', look.colour)];
    const note = 'The stronger the shade, the more transactions ended with that latency.';
    return { id: 'latency', title: 'Latency', unit: 'ms', kind: 'heat', note, isTall: true, t, lines, heat };
  }
  const lines = [
    percentile('p50', '', look.colour),
    percentile('p95', '6 3', look.colour),
    percentile('p99', '2 3', look.colour),
  ];
  const note = 'No histogram was stored for each second of this trial: percentiles of each second are drawn instead.';
  return { id: 'latency', title: 'Latency', unit: 'ms', kind: 'lines', note, isTall: true, t, lines };
}

function meanOf(values: (number | null)[]): number {
  const known = values.filter((v) => v !== null);
  return known.length ? known.reduce((a, b) => a + b, 0) / known.length : 0;
}

function waitPanel(table: Chart, focus: string | null): Panel {
  const idle = table.lines.find((l) => l.name === IDLE);
  const busy = table.lines
    .filter((l) => l !== idle)
    .sort((a, b) => Number(a.name === 'others') - Number(b.name === 'others') || meanOf(b.mean) - meanOf(a.mean));
  const accent = busy.find((l) => l.name === focus) ?? busy.find((l) => l.name !== 'CPU' && l.name !== 'others');
  let greys = 0;
  const lines = busy.map((l) => ({
    ...l,
    colour: l === accent ? 'var(--accent)' : grey(greys++),
    dash: '',
  }));
  const note = idle
    ? `Idle backends, which wait for the load generator (${IDLE}), are left out: ${meanOf(idle.mean).toFixed(1)} on average.`
    : undefined;
  const title = 'What the load’s backends wait for';
  return { id: table.group, title, unit: table.unit, kind: 'stack', note, isTall: true, t: edges(table.t_s), lines };
}

function lines(table: Chart, colour: string, isUnder: boolean): Line[] {
  return table.lines.map((l, i) => ({
    ...l,
    name: isUnder ? `${l.name} (under)` : l.name,
    colour,
    dash: DASHES[i % DASHES.length],
    isUnder,
  }));
}

function rank(table: Chart): number {
  const at = ORDER.indexOf(table.group);
  return (table.detail ? 100 : 0) + (at < 0 ? ORDER.length : at);
}

/** The charts of a trial, from top to bottom; `under` is laid under where both have a chart. */
export function panelsOf(
  detail: TrialDetail,
  look: Look,
  under: { detail: TrialDetail; look: Look } | null,
  focus: string | null,
  stages: StageView[] = [],
): Panel[] {
  const { series } = detail;
  const tps: Panel = {
    id: 'tps',
    title: 'Throughput',
    unit: 'tps',
    kind: 'lines',
    isTall: true,
    note: detail.reduced ? 'Mean of each bucket, with the range of its seconds.' : undefined,
    t: edges(series.t_s, series.length_s),
    lines: [...tpsLines(detail, look, false), ...dueLines(detail, stages)],
    under: under
      ? {
          t: edges(under.detail.series.t_s, under.detail.series.length_s),
          lines: tpsLines(under.detail, under.look, true),
        }
      : undefined,
  };
  const tables = [...detail.telemetry].sort((a, b) => rank(a) - rank(b));
  const panel = (table: Chart, i: number): Panel => {
    if (table.group === 'wait_events') {
      return waitPanel(table, focus);
    }
    const other = under?.detail.telemetry.find((o) => o.group === table.group && o.title === table.title);
    return {
      id: `${table.group}-${i}`,
      title: table.title,
      unit: table.unit,
      kind: 'lines',
      isDetail: table.detail,
      t: edges(table.t_s),
      lines: lines(table, look.colour, false),
      under: other && under ? { t: edges(other.t_s), lines: lines(other, under.look.colour, true) } : undefined,
    };
  };
  const loaded = series.t_s.length > 0 ? [tps, latencyPanel(detail, look)] : [];
  return [...loaded, ...tables.map(panel)];
}

/** Sums of a stack from below, the lowest part first. Where a part is not known it counts nothing. */
export function stacked(parts: (number | null)[][]): (number | null)[][] {
  const total: (number | null)[] = [];
  return parts.map((part) =>
    part.map((v, i) => {
      total[i] = v === null ? (total[i] ?? null) : (total[i] ?? 0) + v;
      return total[i];
    }),
  );
}

/** Value of each line at `t`; null outside of its buckets. */
export function valuesAt(panel: Panel, t: number | null): (number | null)[] {
  if (t === null) {
    return panel.lines.map(() => null);
  }
  const begin = panel.t.slice(0, -1);
  const at = within(begin, panel.t.slice(1), null).find((i) => t >= begin[i] && t < panel.t[i + 1]);
  return panel.lines.map((line) => (at === undefined ? null : line.mean[at]));
}
