// The plain HTML is a page's first view: nothing moves when the front end takes its place.
import type { Page } from '@playwright/test';
import { drawn, expect, test } from './support/open';
import { address, NAMES } from './support/pages';

/** Parts that both have; of the table, what a reader looks at. */
const PARTS = ['h1', '.card', '.answer', '.figures', '.command', '.cautions'];
const TABLE = ['.treatments', '.treatments tbody tr:first-child', '.treatments tbody tr:last-child'];
/** Pixels by which a part may move: widths of columns are rounded. */
const NEAR = 2;

declare global {
  interface Window {
    begin?: () => void;
  }
}

/** Opens a page whose program waits for `window.begin`: its first frame is held back. */
async function openHeld(page: Page, url: string): Promise<void> {
  await page.addInitScript(() => {
    const frame = window.requestAnimationFrame.bind(window);
    window.requestAnimationFrame = (step) => {
      window.requestAnimationFrame = frame;
      window.begin = () => frame(step);
      return 0;
    };
  });
  await page.goto(url);
}

async function boxes(page: Page, root: string, parts: string[]): Promise<Record<string, number[]>> {
  return page.locator(root).evaluate((element, selectors) => {
    const found = selectors.flatMap((selector) => {
      const part = element.querySelector(selector);
      if (!part) {
        return [];
      }
      const { x, y, width, height } = part.getBoundingClientRect();
      return [[selector, [x, y, width, height]] as [string, number[]]];
    });
    return Object.fromEntries(found);
  }, parts);
}

for (const name of NAMES) {
  for (const width of [390, 1440]) {
    test(`${name}: nothing moves at ${width} pixels`, async ({ page }) => {
      await page.setViewportSize({ width, height: 900 });
      await openHeld(page, address(name));
      await expect(page.locator('#pgdyno-static .card')).toBeVisible();
      // Of many treatments the front end lists some, below a search.
      const isMany = (await page.locator('#pgdyno-static .controls-room').count()) > 0;
      const parts = isMany ? PARTS : [...PARTS, ...TABLE];
      const before = await boxes(page, '#pgdyno-static', parts);
      await page.evaluate(() => window.begin?.());
      await drawn(page);
      const after = await boxes(page, '#pgdyno-app', parts);
      expect(Object.keys(after).sort()).toEqual(Object.keys(before).sort());
      for (const [part, box] of Object.entries(before)) {
        for (const [i, value] of box.entries()) {
          expect(Math.abs(after[part][i] - value), `${part}: ${box.join(' ')} became ${after[part].join(' ')}`).toBeLessThanOrEqual(NEAR);
        }
      }
    });
  }
}
