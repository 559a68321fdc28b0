// Time until a report is seen, as a ratio to an empty page in the same browser, in turn.
//
//     node bench/first-view.mjs REPORT.html...
//
// Seen: the frame after answer and table of treatments are in the document and have a size begins.
// Drawn: the frame after the last section of the front end is in the document begins. An empty page
// is seen when the frame after its end begins. CHROMIUM names the browser, ROUNDS how often each
// page is opened (20).
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { chromium } from '@playwright/test';

const reports = process.argv.slice(2).map((path) => resolve(path));
if (reports.length === 0) {
  console.error('cannot measure: no report is named\nhelp: node bench/first-view.mjs REPORT.html...');
  process.exit(1);
}
const rounds = Number(process.env.ROUNDS ?? 20);
const folder = mkdtempSync(join(tmpdir(), 'pgdyno-first-view-'));
const empty = join(folder, 'empty.html');
writeFileSync(empty, '<!doctype html><html lang="en"><title>empty</title><main class="card treatments" id="content">empty</main></html>\n');

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
});

/** Milliseconds from the request of a page until it is seen, and until it is drawn. */
async function open(path) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.addInitScript(() => {
    const frame = (look) => requestAnimationFrame(look);
    /** Time at which the frame after `holds` begins. */
    const once = (holds) =>
      new Promise((tell) => {
        const look = () => {
          if (holds()) {
            frame(() => setTimeout(() => tell(performance.now())));
          } else {
            frame(look);
          }
        };
        frame(look);
      });
    const has = (selector) => [...document.querySelectorAll(selector)].some((e) => e.getBoundingClientRect().height > 0);
    globalThis.seen = once(() => has('.card') && (has('.treatments tbody tr') || has('main.treatments')));
    globalThis.drawn = once(
      () => document.readyState !== 'loading' && document.querySelector('#content') && !document.querySelector('#content[aria-busy=true]'),
    );
  });
  await page.goto(`file://${path}`, { waitUntil: 'commit' });
  const taken = await page.evaluate(async () => ({ seen: await globalThis.seen, drawn: await globalThis.drawn }));
  await page.close();
  return taken;
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

try {
  await open(empty);
  const ratios = reports.map(() => ({ seen: [], drawn: [] }));
  for (let round = 0; round < rounds; round++) {
    for (const [i, report] of reports.entries()) {
      const [own, none] = [await open(report), await open(empty)];
      ratios[i].seen.push(own.seen / none.seen);
      ratios[i].drawn.push(own.drawn / none.seen);
    }
  }
  for (const [i, report] of reports.entries()) {
    const megabytes = (statSync(report).size / 1e6).toFixed(2);
    const times = (values) => `${median(values).toFixed(1)} ×`;
    const { seen, drawn } = ratios[i];
    console.log(`${basename(report)}: ${megabytes} MB, seen after ${times(seen)} an empty page, drawn after ${times(drawn)} (median of ${rounds})`);
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
