// A chart over time as SVG, for saving: canvases cannot be saved as such.
import { linear, log, type Axis } from '../chart/axis';
import { resolved } from '../chart/save';
import { isLogarithmic, latencyRange, topOf } from './canvas';
import type { Range } from './intervals';
import { stacked, type Line, type Panel } from './panels';

const SVG = 'http://www.w3.org/2000/svg';
const LEFT = 60;

function add(to: Element, name: string, attributes: Record<string, string | number>, text?: string): void {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, String(value));
  }
  if (text !== undefined) {
    element.textContent = text;
  }
  to.append(element);
}

/** Steps from bucket to bucket, with gaps where nothing is known. */
function steps(t: number[], values: (number | null)[], x: Axis, y: Axis): string {
  let isOpen = false;
  return values
    .map((v, i) => {
      if (v === null) {
        isOpen = false;
        return '';
      }
      const [from, to, at] = [x.scale(t[i]), x.scale(t[i + 1]), y.scale(v)].map((n) => n.toFixed(1));
      const command = isOpen ? 'L' : 'M';
      isOpen = true;
      return `${command}${from},${at}H${to}`;
    })
    .join('');
}

function drawAxes(svg: Element, panel: Panel, x: Axis, y: Axis, [w, h]: [number, number]): void {
  const soft = resolved('var(--ink-soft)');
  const font = { 'font-size': 12, 'font-family': 'system-ui, sans-serif', fill: soft };
  for (const { at, text } of y.ticks) {
    add(svg, 'line', { x1: LEFT, x2: w - 20, y1: y.scale(at), y2: y.scale(at), stroke: resolved('var(--grid)') });
    add(svg, 'text', { x: LEFT - 8, y: y.scale(at) + 4, 'text-anchor': 'end', ...font }, text);
  }
  for (const { at, text } of x.ticks) {
    add(svg, 'text', { x: x.scale(at), y: h - 18, 'text-anchor': 'middle', ...font }, text);
  }
  add(svg, 'text', { x: w / 2, y: h - 2, 'text-anchor': 'middle', ...font }, 'seconds since the window opened');
  const turned = `translate(12,${h / 2 - 16}) rotate(-90)`;
  add(svg, 'text', { transform: turned, 'text-anchor': 'middle', ...font }, panel.unit);
}

function drawHeat(svg: Element, panel: Panel, x: Axis, y: Axis): void {
  const { heat } = panel;
  if (!heat) {
    return;
  }
  const most = Math.max(...heat.rows.filter((_, i) => i % 3 === 2), 1);
  for (let i = 0; i + 2 < heat.rows.length; i += 3) {
    const [t, bucket, count] = [heat.rows[i], heat.rows[i + 1], heat.rows[i + 2]];
    const edge = (k: number) => y.scale((heat.base_us * 2 ** (k / heat.per_octave)) / 1000);
    const [left, right] = [x.scale(panel.t[t]), x.scale(panel.t[t + 1])];
    add(svg, 'rect', {
      x: left,
      y: edge(bucket + 1),
      width: Math.max(right - left, 0.5),
      height: edge(bucket) - edge(bucket + 1),
      fill: resolved('var(--ink)'),
      'fill-opacity': (0.08 + (0.72 * Math.log(count + 1)) / Math.log(most + 1)).toFixed(2),
    });
  }
}

/** Draws `panel` between the seconds of `range`. */
export function panelSvg(panel: Panel, range: Range, w: number, h: number): SVGSVGElement {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('width', String(w));
  svg.setAttribute('height', String(h + 14));
  const x = linear(range, [LEFT, w - 20], 70, false);
  const rangeY: Range = [h - 36, 8];
  const y = isLogarithmic(panel) ? log(latencyRange(panel), rangeY) : linear([0, topOf(panel)], rangeY);
  drawAxes(svg, panel, x, y, [w, h + 14]);
  drawHeat(svg, panel, x, y);
  const draw = (line: Line, t: number[], mean: (number | null)[]) =>
    add(svg, 'path', {
      d: steps(t, mean, x, y),
      fill: 'none',
      stroke: resolved(line.colour),
      'stroke-width': 1.6,
      'stroke-dasharray': line.dash,
    });
  if (panel.kind === 'stack') {
    const sums = stacked(panel.lines.map((l) => l.mean));
    for (let i = sums.length - 1; i >= 0; i -= 1) {
      const outline = sums[i].flatMap((v, k) => (v === null ? [] : [[panel.t[k], v], [panel.t[k + 1], v]]));
      if (outline.length) {
        const top = outline.map(([t, v]) => `${x.scale(t).toFixed(1)},${y.scale(v).toFixed(1)}`).join('L');
        const base = y.scale(0).toFixed(1);
        const d = `M${x.scale(outline[0][0]).toFixed(1)},${base}L${top}V${base}Z`;
        add(svg, 'path', { d, fill: resolved(panel.lines[i].colour) });
      }
    }
  } else {
    panel.lines.forEach((l) => draw(l, panel.t, l.mean));
    panel.under?.lines.forEach((l) => draw(l, panel.under?.t ?? [], l.mean));
  }
  return svg;
}
