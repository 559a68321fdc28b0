// Comparisons: pairs, gates, and what else differs; published figures beside a run.
import type { CompareView, Difference, ImportedRun, SideBySideView } from '../src/data/types';
import { interval, rate, times } from '../src/format';
import { otherDifferences } from '../src/compare/rows';
import { figureText, tpsOf } from '../src/import/figures';
import { expect, open, test } from './support/open';
import { pageDocument, shown } from './support/pages';

test('every pair has its figures and its interval', async ({ page, trouble }) => {
  await open(page, 'compare-treatments');
  const view = shown<CompareView>('compare-treatments');
  const rows = page.locator('#treatments .scroll table:not(figure table) tbody tr');
  await expect(rows).toHaveCount(view.pairs.length);
  for (const [i, pair] of view.pairs.entries()) {
    await expect(rows.nth(i)).toContainText(pair.label);
    await expect(rows.nth(i)).toContainText(rate(pair.a.tps?.mean));
    await expect(rows.nth(i)).toContainText(rate(pair.b.tps?.mean));
    if (pair.ratio.ci95) {
      await expect(rows.nth(i)).toContainText(`${times(pair.ratio.value)} (${interval(pair.ratio.ci95)})`);
    }
  }
  expect(trouble).toEqual([]);
});

test('the chart shows the ratios of what the reader chose', async ({ page }) => {
  await open(page, 'compare-treatments');
  const view = shown<CompareView>('compare-treatments');
  const p50 = view.pairs.map((pair) => pair.latency.find((l) => l.percentile === 'p50')?.value);

  await page.getByLabel('Compare by').selectOption('p50');
  const figure = page.locator('#treatments figure');
  await expect(figure.locator('.title')).toHaveText('p50 of latency of B against A');
  for (const value of p50.filter((v) => v !== undefined)) {
    await expect(figure.locator('svg.chart')).toContainText(times(value));
  }
});

test('gates show their outcome in words and by sign', async ({ page }) => {
  const view = shown<CompareView>('compare-runs');
  await open(page, 'compare-runs');
  const gates = page.locator('#gates li');
  await expect(gates).toHaveCount(view.gates.length);
  for (const [i, gate] of view.gates.entries()) {
    await expect(gates.nth(i)).toHaveAttribute('data-outcome', gate.outcome);
    await expect(gates.nth(i)).toContainText(gate.outcome);
    await expect(gates.nth(i)).toContainText(gate.words);
  }
});

test('only what differs between the environments is shown', async ({ page }) => {
  await open(page, 'compare-runs');
  const rows = pageDocument('compare-runs').differences as Difference[];
  const view = shown<CompareView>('compare-runs');
  await expect(page.locator('#environment tbody tr')).toHaveCount(otherDifferences(rows, view).length + view.unequal.length);
  for (const row of rows) {
    expect(row.a).not.toBe(row.b);
    await expect(page.locator('#environment')).toContainText(row.name);
  }
});

test('published figures and a run stand side by side with ratios of their own', async ({ page, trouble }) => {
  await open(page, 'beside');
  const view = shown<SideBySideView>('beside');
  for (const [id, rows] of [
    ['published', view.theirs],
    ['measured', view.ours],
  ] as const) {
    await expect(page.locator(`#${id} tbody tr`)).toHaveCount(rows.length);
    for (const row of rows) {
      await expect(page.locator(`#${id} tbody`)).toContainText(times(row.ratio_to_best));
      await expect(page.locator(`#${id} tbody`)).toContainText(rate(row.tps));
    }
  }
  expect(trouble).toEqual([]);
});

test('figures of an imported report stand with the digits that it printed', async ({ page, trouble }) => {
  await open(page, 'import');
  const { recognised, sha256 } = shown<ImportedRun>('import');
  const main = page.locator('#content');
  for (const run of recognised.runs) {
    await expect(main).toContainText(figureText(tpsOf(run)));
  }
  for (const row of recognised.tables.flatMap((table) => table.rows)) {
    await expect(main).toContainText(row.label);
    for (const figure of row.repeats) {
      await expect(main).toContainText(figureText(figure));
    }
  }
  await expect(main).toContainText(sha256);
  expect(trouble).toEqual([]);
});
