// Charts as files. Colours come from custom properties, which a file by itself lacks: the values are
// written into the copy.

const INHERITED = [
  'fill',
  'fill-opacity',
  'stroke',
  'stroke-width',
  'stroke-dasharray',
  'stroke-opacity',
  'stroke-linejoin',
  'opacity',
  'paint-order',
  'font-size',
  'font-family',
  'font-weight',
  'text-anchor',
  'dominant-baseline',
  'visibility',
];

const PAD = 14;
const TITLE = 30;
const SVG = 'http://www.w3.org/2000/svg';

export interface Legend {
  label: string;
  colour: string;
  dash: string;
}

/** Value of a custom property, for what is drawn without a style sheet. */
export function resolved(colour: string, at: Element = document.documentElement): string {
  const name = /^var\((--[\w-]+)\)$/.exec(colour)?.[1];
  return name ? getComputedStyle(at).getPropertyValue(name).trim() : colour;
}

function withStyles(from: Element, to: Element): void {
  const style = getComputedStyle(from);
  for (const name of INHERITED) {
    const value = style.getPropertyValue(name);
    if (value) {
      to.setAttribute(name, value);
    }
  }
  for (const name of ['class', 'tabindex', 'role', 'style', 'href']) {
    to.removeAttribute(name);
  }
  Array.from(from.children).forEach((child, i) => withStyles(child, to.children[i]));
}

function add(to: Element, name: string, attributes: Record<string, string | number>): Element {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, String(value));
  }
  return to.appendChild(element);
}

/** Draws the title and a legend below it; returns how high both are. */
function head(to: Element, title: string, legend: Legend[], width: number): number {
  const text = { fill: resolved('var(--ink)'), 'font-family': 'system-ui, sans-serif' };
  const heading = { x: PAD, y: PAD + 12, 'font-size': 15, 'font-weight': 600, ...text };
  add(to, 'text', heading).textContent = title;
  let [x, y] = [PAD, TITLE + PAD + 4];
  for (const { label, colour, dash } of legend) {
    const needs = 38 + label.length * 6.6;
    if (x > PAD && x + needs > width) {
      [x, y] = [PAD, y + 18];
    }
    const line = { x1: x, x2: x + 24, y1: y - 4, y2: y - 4, 'stroke-width': 2.5 };
    add(to, 'line', { ...line, stroke: resolved(colour), 'stroke-dasharray': dash });
    add(to, 'text', { x: x + 30, y, 'font-size': 12, ...text }).textContent = label;
    x += needs + 12;
  }
  return legend.length ? y + 10 : TITLE + PAD;
}

export interface Drawing {
  text: string;
  width: number;
  height: number;
}

/** Writes `chart` as a file of its own, with its title and legend. */
export function drawing(chart: SVGSVGElement, title: string, legend: Legend[]): Drawing {
  const box = chart.getBoundingClientRect();
  const own = { width: Number(chart.getAttribute('width')), height: Number(chart.getAttribute('height')) };
  const [w, h] = [own.width || box.width, own.height || box.height];
  const width = Math.round(w + 2 * PAD);
  const root = document.createElementNS(SVG, 'svg');
  const ground = add(root, 'rect', { width: '100%', height: '100%', fill: resolved('var(--page)') });
  const top = head(root, title, legend, width - PAD);
  const height = Math.round(h + top + PAD);
  const body = add(root, 'g', { transform: `translate(${PAD},${top})` });
  const copy = chart.cloneNode(true) as SVGSVGElement;
  if (chart.isConnected) {
    withStyles(chart, copy);
  }
  body.append(...Array.from(copy.childNodes));
  ground.setAttribute('height', String(height));
  root.setAttribute('xmlns', SVG);
  root.setAttribute('viewBox', `0 0 ${width} ${height}`);
  root.setAttribute('width', String(width));
  root.setAttribute('height', String(height));
  return { text: new XMLSerializer().serializeToString(root), width, height };
}

/** Draws an SVG as PNG, two pixels for one. */
export async function png({ text, width, height }: Drawing): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [width * 2, height * 2];
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, failed) =>
    canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error('the browser made no PNG')))),
  );
}

/** Offers `content` as a file. */
export function download(content: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A file's name out of a title. */
export function fileName(title: string, extension: string): string {
  const stem = title.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '');
  return `${stem.slice(0, 60) || 'chart'}.${extension}`;
}
