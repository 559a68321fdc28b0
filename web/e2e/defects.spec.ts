// What earlier reports did wrong. Two files test the rest. run.spec.ts: dashes in legends, arrows at
// cut intervals, idle backends. every-page.spec.ts: headings over empty sections.
import type { Page } from '@playwright/test';
import type { RunView } from '../src/data/types';
import { rate } from '../src/format';
import { expect, open, test } from './support/open';
import { shown } from './support/pages';

/** Relative luminance of a colour as browsers compute it. */
function luminance(colour: string): number {
  const channels = (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  const [r, g, b] = channels.map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: string, b: string): number {
  const [high, low] = [luminance(a), luminance(b)].sort((p, q) => q - p);
  return (high + 0.05) / (low + 0.05);
}

/** Values of custom properties on the page. */
async function properties(page: Page, names: string[]): Promise<string[]> {
  return page.evaluate((all) => {
    const style = getComputedStyle(document.documentElement);
    return all.map((name) => style.getPropertyValue(name).trim());
  }, names);
}

const treatments = Array.from({ length: 8 }, (_, i) => `--treatment-${i + 1}`);
const greys = Array.from({ length: 6 }, (_, i) => `--grey-${i + 1}`);

for (const colorScheme of ['light', 'dark'] as const) {
  test(`treatments have eight colours, and waits have none of them, in ${colorScheme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme });
    await open(page, 'quickstart');
    const colours = await properties(page, treatments);
    expect(new Set(colours).size).toBe(8);
    for (const other of await properties(page, [...greys, '--accent', '--ink', '--ink-soft', '--ink-faint'])) {
      expect(colours).not.toContain(other);
    }
    for (const grey of await properties(page, greys)) {
      const [r, g, b] = (grey.match(/[\da-f]{2}/gi) ?? []).map((part) => parseInt(part, 16));
      expect(Math.max(r, g, b) - Math.min(r, g, b)).toBeLessThan(16);
    }
  });

  test(`a verdict is read at a contrast of 4.5 at least in ${colorScheme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme });
    await open(page, 'crash');
    const badges = await page.locator('#pgdyno-app .badge').evaluateAll((all) =>
      all.map((badge) => {
        const { color, backgroundColor } = getComputedStyle(badge);
        return { words: badge.textContent ?? '', color, backgroundColor };
      }),
    );
    expect(badges.some(({ words }) => words.includes('pass'))).toBe(true);
    for (const { words, color, backgroundColor } of badges) {
      expect(contrast(color, backgroundColor), `${words}: ${color} on ${backgroundColor}`).toBeGreaterThanOrEqual(4.5);
    }
  });
}

test('36 treatments are answered on a page that ends, with the curve that was the question', async ({ page }) => {
  await open(page, 'heat');
  expect(shown<RunView>('heat').treatments).toHaveLength(36);
  await expect(page.locator('#shape svg.chart').first()).toBeVisible();
  const { shape, height } = await page.evaluate(() => ({
    shape: document.getElementById('shape')!.getBoundingClientRect().top + scrollY,
    height: document.documentElement.scrollHeight,
  }));
  expect(height).toBeLessThan(28_760 / 3);
  expect(shape).toBeLessThan(3000);
});

test('a sweep shows its curve of tps over the factor without a click', async ({ page }) => {
  await open(page, 'sweep');
  await expect(page.locator('#shape')).toContainText('clients');
  await expect(page.locator('#shape svg.chart').first()).toBeVisible();
});

test('tables keep every number on a phone', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await open(page, 'quickstart');
  const table = page.locator('#treatments table').first();
  for (const treatment of shown<RunView>('quickstart').treatments) {
    await expect(table).toContainText(rate(treatment.tps!.mean));
  }
  const lost = await table.locator('td').evaluateAll((cells) =>
    cells.filter((cell) => {
      const box = cell.getBoundingClientRect();
      const gone = box.width === 0 && (cell.textContent ?? '').trim() !== '';
      return gone || box.right > document.documentElement.clientWidth + 1 || box.left < -1;
    }).length,
  );
  expect(lost).toBe(0);
});

test('text that is drawn in charts is readable on the page, and in the cells of a grid', async ({ page }) => {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await open(page, 'heat');
    const drawn = await page.locator('svg.chart text').evaluateAll((texts) => {
      const rgb = (colour: string) => (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
      const ground = rgb(getComputedStyle(document.body).backgroundColor);
      return texts.map((text) => {
        const [under, ink] = [...(text.closest('.cell')?.querySelectorAll('rect') ?? [])];
        const share = Number(ink?.getAttribute('fill-opacity') ?? 0);
        const [from, to] = [under ? rgb(getComputedStyle(under).fill) : ground, ink ? rgb(getComputedStyle(ink).fill) : ground];
        const behind = from.map((c, i) => c + (to[i] - c) * share);
        return { words: text.textContent ?? '', fill: getComputedStyle(text).fill, behind: `rgb(${behind.join(',')})` };
      });
    });
    for (const { words, fill, behind } of drawn.filter(({ words }) => words.trim())) {
      expect(contrast(fill, behind), `${words} in ${colorScheme}: ${fill} on ${behind}`).toBeGreaterThanOrEqual(4.5);
    }
  }
});
