// A chart over time with uPlot: data in its shape, options, and what is drawn below the lines.
//
// uPlot sets style through properties only, which the page's policy allows.
import uPlot from 'uplot';
import { extent } from '../chart/axis';
import { resolved } from '../chart/save';
import { tick } from '../format';
import type { Mark } from './marks';
import { stacked, type Line, type Panel } from './panels';

const HEIGHT = { heat: 250, tall: 190, low: 132 };
const SYNC = 'pgdyno-time';
/** Height of a chart in pixels. */
export function heightOf(panel: Panel): number {
  return panel.kind === 'heat' ? HEIGHT.heat : panel.isTall ? HEIGHT.tall : HEIGHT.low;
}

/** Buckets up to which lines are drawn as steps. */
const STEPS = 240;

/** Largest value that an axis from 0 must hold. */
export function topOf(panel: Panel): number {
  if (panel.kind === 'stack') {
    return extent(stacked(panel.lines.map((l) => l.mean)).flat())[1] || 1;
  }
  const all = [...panel.lines, ...(panel.under?.lines ?? [])];
  return extent(all.flatMap((l) => [...l.mean, ...(l.max ?? [])]))[1] || 1;
}

export function isLogarithmic(panel: Panel): boolean {
  return panel.id === 'latency';
}

/** Range of a logarithmic axis: what lines and histogram hold, and a little more. */
export function latencyRange(panel: Panel): [number, number] {
  const { heat } = panel;
  const edge = (k: number) => ((heat?.base_us ?? 1) * 2 ** (k / (heat?.per_octave ?? 8))) / 1000;
  const buckets = extent(heat ? heat.rows.filter((_, i) => i % 3 === 1) : [], [0, 0]);
  const [low, high] = heat
    ? [edge(buckets[0]), edge(buckets[1] + 1)]
    : extent(panel.lines.flatMap((l) => l.mean.filter((v) => v !== null && v > 0)));
  return [Math.max(low, 1e-3) * 0.8, high * 1.25];
}

type Column = (number | null | undefined)[];

/** The last value once more, at the end of its bucket. */
function closed(values: (number | null)[]): Column {
  return [...values, values.length ? values[values.length - 1] : null];
}

/** Data in uPlot's shape: times, then a column a line. Ranges of reduced lines come as two columns. */
export function columns(panel: Panel): uPlot.AlignedData {
  if (panel.kind === 'stack') {
    // The highest sum is drawn first, and the lower ones over it.
    const sums = stacked(panel.lines.map((l) => l.mean)).reverse();
    return [panel.t, ...sums.map(closed)] as uPlot.AlignedData;
  }
  const own = (t: number[], list: Line[]) =>
    [t, ...list.flatMap((l) => [closed(l.mean), ...ranges(l)])] as uPlot.AlignedData;
  const table = own(panel.t, panel.lines);
  return panel.under ? uPlot.join([own(panel.under.t, panel.under.lines), table]) : table;
}

function ranges(line: Line): Column[] {
  return line.min && line.max ? [closed(line.max), closed(line.min)] : [];
}

function colourOf(colour: string, alpha = 1): string {
  const value = resolved(colour);
  return alpha < 1 && /^#[0-9a-f]{6}$/i.test(value)
    ? `${value}${Math.round(alpha * 255).toString(16).padStart(2, '0')}`
    : value;
}

function lineSeries(line: Line, isStepped: boolean): uPlot.Series[] {
  const own: uPlot.Series = {
    label: line.name,
    stroke: () => colourOf(line.colour),
    width: line.isUnder ? 1.25 : 1.75,
    dash: line.dash ? line.dash.split(' ').map(Number) : undefined,
    paths: isStepped ? uPlot.paths.stepped?.({ align: 1 }) : undefined,
    points: { show: false },
    // Columns of two trials are joined by time: what one lacks there is no gap.
    spanGaps: false,
  };
  const hidden: uPlot.Series = { stroke: 'transparent', width: 0, points: { show: false }, paths: own.paths };
  return line.min && line.max ? [own, hidden, { ...hidden }] : [own];
}

function seriesOf(panel: Panel, isStepped: boolean): { series: uPlot.Series[]; bands: uPlot.Band[] } {
  if (panel.kind === 'stack') {
    const series = [...panel.lines].reverse().map((line): uPlot.Series => ({
      label: line.name,
      stroke: () => resolved('var(--page)'),
      width: 0.75,
      fill: () => resolved(line.colour),
      paths: isStepped ? uPlot.paths.stepped?.({ align: 1 }) : undefined,
      points: { show: false },
    }));
    return { series, bands: [] };
  }
  const lines = [...(panel.under?.lines ?? []), ...panel.lines];
  const series: uPlot.Series[] = [];
  const bands: uPlot.Band[] = [];
  for (const line of lines) {
    const at = series.length + 1;
    series.push(...lineSeries(line, isStepped));
    if (line.min && line.max) {
      bands.push({ series: [at + 1, at + 2], fill: () => colourOf(line.colour, 0.18) });
    }
  }
  return { series, bands };
}

/** Draws the latency histogram: the darker, the more transactions. */
function drawHeat(u: uPlot, panel: Panel): void {
  const { heat } = panel;
  if (!heat) {
    return;
  }
  const { ctx, bbox } = u;
  let most = 1;
  for (let i = 2; i < heat.rows.length; i += 3) {
    most = Math.max(most, heat.rows[i]);
  }
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = resolved('var(--ink)');
  const edge = (k: number) => u.valToPos((heat.base_us * 2 ** (k / heat.per_octave)) / 1000, 'y', true);
  for (let i = 0; i + 2 < heat.rows.length; i += 3) {
    const [t, bucket, count] = [heat.rows[i], heat.rows[i + 1], heat.rows[i + 2]];
    const [left, right] = [u.valToPos(panel.t[t], 'x', true), u.valToPos(panel.t[t + 1], 'x', true)];
    const [top, bottom] = [edge(bucket + 1), edge(bucket)];
    ctx.globalAlpha = 0.06 + (0.7 * Math.log(count + 1)) / Math.log(most + 1);
    ctx.fillRect(left, top, Math.max(right - left, 0.5), Math.max(bottom - top, 0.5));
  }
  ctx.restore();
}

function drawMarks(u: uPlot, marks: Mark[]): void {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const mark of marks) {
    const [from, to] = [u.valToPos(mark.from, 'x', true), u.valToPos(mark.to, 'x', true)];
    if (mark.kind === 'checkpoint') {
      ctx.fillStyle = resolved('var(--band)');
      ctx.fillRect(from, bbox.top, Math.max(to - from, 1), bbox.height);
    } else {
      const isChange = mark.kind === 'change' || mark.kind === 'fault';
      ctx.strokeStyle = resolved(isChange ? 'var(--accent)' : 'var(--rule-strong)');
      ctx.lineWidth = (isChange ? 2 : 1) * devicePixelRatio;
      ctx.setLineDash(isChange ? [6, 4] : [2, 3]);
      ctx.beginPath();
      ctx.moveTo(from, bbox.top);
      ctx.lineTo(from, bbox.top + bbox.height);
      ctx.stroke();
    }
  }
  ctx.restore();
}

export interface Handlers {
  /** The pointer is at `t` (seconds), or has left. */
  onpoint: (t: number | null) => void;
  /** An interval was drawn; null: a click without one. */
  onbrush: (range: [number, number] | null) => void;
  /** The chart has its scales. */
  onready: (u: uPlot) => void;
}

function axis(label: string | undefined, isX: boolean): uPlot.Axis {
  return {
    stroke: () => resolved('var(--ink-soft)'),
    grid: { stroke: () => resolved('var(--grid)'), width: 1, show: !isX },
    ticks: { stroke: () => resolved('var(--rule-strong)'), width: 1, size: 4, show: isX },
    font: '12px system-ui, sans-serif',
    labelFont: '12px system-ui, sans-serif',
    label,
    labelSize: 16,
    labelGap: 2,
    size: isX ? 24 : 46,
    gap: 4,
    values: (_, values) => values.map((v) => (v === null ? '' : isX ? `${tick(v)} s` : tick(v))),
  };
}

/** Options of the chart of `panel`. */
export function options(panel: Panel, width: number, range: [number, number], marks: Mark[], on: Handlers): uPlot.Options {
  const isStepped = panel.t.length <= STEPS;
  const { series, bands } = seriesOf(panel, isStepped);
  const isLog = isLogarithmic(panel);
  return {
    width,
    height: heightOf(panel),
    padding: [8, 20, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { show: false },
      sync: { key: SYNC, scales: ['x', null] },
      drag: { x: true, y: false, setScale: false },
    },
    scales: {
      x: { time: false, range: () => range },
      y: isLog ? { distr: 3, range: () => latencyRange(panel) } : { range: () => [0, topOf(panel) * 1.08] },
    },
    axes: [axis(undefined, true), axis(panel.unit, false)],
    series: [{}, ...series],
    bands,
    hooks: {
      ready: [on.onready],
      // Spans would pass for the darkness of a histogram.
      drawClear: [
        (u) => drawMarks(u, panel.heat ? marks.filter((m) => m.kind !== 'checkpoint') : marks),
        (u) => drawHeat(u, panel),
      ],
      setCursor: [(u) => on.onpoint(u.cursor.left != null && u.cursor.left >= 0 ? u.posToVal(u.cursor.left, 'x') : null)],
      setSelect: [
        (u) => {
          const { left, width: w } = u.select;
          on.onbrush(w > 3 ? [u.posToVal(left, 'x'), u.posToVal(left + w, 'x')] : null);
        },
      ],
    },
  };
}
