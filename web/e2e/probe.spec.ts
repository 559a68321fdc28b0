// Probes: rates and latencies as the JSON has them.
import type { DiskProbe, FsyncProbe, ProbeRecord } from '../src/data/types';
import { milliseconds, significant } from '../src/format';
import { expect, open, test } from './support/open';
import { shown } from './support/pages';

test('the rates of fsync are operations by seconds', { tag: '@smoke' }, async ({ page, trouble }) => {
  await open(page, 'fsync');
  const probe = shown<ProbeRecord>('fsync').result as FsyncProbe;
  for (const test of probe.tests.filter((t) => t.group === 'one-block')) {
    const row = page.locator('#one-block table tr', { has: page.getByText(test.name, { exact: true }) });
    if ('measured' in test.outcome) {
      const { operations, seconds, latency } = test.outcome.measured;
      await expect(row).toContainText(significant(operations / seconds));
      await expect(row).toContainText(milliseconds(latency.us_p99));
    } else {
      await expect(row).toContainText(`not available: ${test.outcome['not-available']}`);
    }
  }
  const writers = probe.tests.filter((t) => t.group === 'concurrent').length;
  await expect(page.locator('#concurrent tbody tr')).toHaveCount(writers);
  expect(trouble).toEqual([]);
});

test('the curves of a disk have every point, in the chart and in its table', async ({ page }) => {
  await open(page, 'disk');
  const probe = shown<ProbeRecord>('disk').result as DiskProbe;
  const reads = probe.points.filter((p) => p.pattern === 'randread');
  const figure = page.locator('figure', { hasText: 'Rate by queue depth' }).first();
  await figure.getByRole('button', { name: /^Numbers of/ }).click();
  await expect(figure.locator('tbody tr')).toHaveCount(new Set(reads.map((p) => p.queue_depth)).size);
  for (const point of reads) {
    await expect(figure.locator('tbody')).toContainText(significant(point.read!.iops));
  }
  const zones = probe.points.filter((p) => p.pattern === 'write' || p.pattern === 'read');
  const chart = page.locator('figure', { hasText: 'Throughput by zone' }).first();
  await expect(chart.locator('svg.chart path[transform]')).toHaveCount(zones.length);
});

test('a chart is saved as SVG without foreign content, and as PNG', async ({ page }) => {
  await open(page, 'disk');
  const figure = page.locator('figure', { hasText: 'Rate by queue depth' }).first();
  for (const [kind, begin] of [
    ['SVG', '<svg'],
    ['PNG', '\u0089PNG'],
  ]) {
    const waiting = page.waitForEvent('download');
    await figure.getByRole('button', { name: kind }).click();
    const download = await waiting;
    expect(download.suggestedFilename()).toBe(`rate-by-queue-depth.${kind.toLowerCase()}`);
    const { readFileSync } = await import('node:fs');
    const content = readFileSync(await download.path());
    expect(content.toString('latin1').slice(0, 4)).toBe(begin);
    if (kind === 'SVG') {
      const text = content.toString('utf8');
      expect(text).not.toMatch(/<script|onload=|href=|var\(--/);
      expect(text).toContain('Rate by queue depth');
    }
  }
});

test('lines of a chart are told apart without colour', async ({ page }) => {
  await open(page, 'disk');
  const figure = page.locator('figure', { hasText: 'Rate by queue depth' }).first();
  const dashes = await figure.locator('svg.chart path.line').evaluateAll((lines) =>
    lines.map((line) => line.getAttribute('stroke-dasharray') ?? ''),
  );
  expect(new Set(dashes).size).toBe(dashes.length);
  const legend = await figure.locator('figcaption svg line').evaluateAll((lines) =>
    lines.map((line) => line.getAttribute('stroke-dasharray') ?? ''),
  );
  expect(legend).toEqual(dashes);
});
