// Time until a report is drawn, as a ratio to an empty page in the same browser, in turn.
//
//     node bench/first-view.mjs REPORT.html...
//
// A report is drawn when the frame after its content is in the document begins: answer, table of
// treatments and charts in view. An empty page is drawn when the frame after its end begins.
// CHROMIUM names the browser, ROUNDS how often each page is opened (20).
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
writeFileSync(empty, '<!doctype html><html lang="en"><title>empty</title><main id="content"></main></html>\n');

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
});

/** Milliseconds from the request of a page until it is drawn. */
async function draw(path) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.addInitScript(() => {
    globalThis.drawn = new Promise((tell) => {
      const look = () => {
        if (document.readyState !== 'loading' && document.querySelector('#content')) {
          requestAnimationFrame(() => setTimeout(() => tell(performance.now())));
        } else {
          requestAnimationFrame(look);
        }
      };
      requestAnimationFrame(look);
    });
  });
  await page.goto(`file://${path}`, { waitUntil: 'commit' });
  const taken = await page.evaluate(() => globalThis.drawn);
  await page.close();
  return taken;
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

try {
  await draw(empty);
  const ratios = reports.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (const [i, report] of reports.entries()) {
      ratios[i].push((await draw(report)) / (await draw(empty)));
    }
  }
  for (const [i, report] of reports.entries()) {
    const megabytes = (statSync(report).size / 1e6).toFixed(2);
    console.log(`${basename(report)}: ${megabytes} MB, ${median(ratios[i]).toFixed(1)} × an empty page (median of ${rounds})`);
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
