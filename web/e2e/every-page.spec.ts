// What holds for every page.
import { drawn, expect, open, overflow, serious, test } from './support/open';
import { address, NAMES, pageDocument } from './support/pages';

for (const name of NAMES) {
  test.describe(name, () => {
    test('is drawn without errors, refused scripts or requests', { tag: '@smoke' }, async ({ page, trouble }) => {
      await open(page, name);
      await expect(page.locator('#pgdyno-app header h1')).toHaveText(String(pageDocument(name).title));
      await expect(page.locator('.problem')).toHaveCount(0);
      const text = await page.locator('body').innerText();
      expect(text).not.toMatch(/\b(undefined|NaN|Infinity)\b|\[object |nullnull/);
      expect(trouble).toEqual([]);
    });

    for (const colorScheme of ['light', 'dark'] as const) {
      test(`has no serious finding of axe-core in ${colorScheme}`, { tag: colorScheme === 'light' ? '@smoke' : [] }, async ({ page }) => {
        await page.emulateMedia({ colorScheme });
        await open(page, name);
        await page.locator('main details').evaluateAll((all) => {
          all.forEach((details) => details.setAttribute('open', ''));
        });
        expect(await serious(page)).toEqual([]);
      });
    }

    for (const width of [390, 2560]) {
      test(`fits ${width} pixels`, async ({ page }) => {
        await page.setViewportSize({ width, height: 900 });
        await open(page, name);
        await expect.poll(() => overflow(page)).toBeLessThanOrEqual(0);
      });
    }

    test('has no heading over an empty section', async ({ page }) => {
      await open(page, name);
      const empty = await page.locator('main section, main figure, main article').evaluateAll((parts) =>
        parts
          .filter((part) => {
            const drawn = part.querySelector('svg, canvas, table, dl, ul, ol, input, pre');
            const words = (part.textContent ?? '').replace(part.querySelector('h2,h3,h4')?.textContent ?? '', '');
            return !drawn && words.trim() === '';
          })
          .map((part) => `${part.tagName} ${part.id} ${part.textContent}`),
      );
      expect(empty).toEqual([]);
    });

    test('tells the answer without JavaScript', { tag: '@smoke' }, async ({ browser }) => {
      const context = await browser.newContext({ javaScriptEnabled: false });
      const page = await context.newPage();
      await page.goto(address(name));
      const answer = String((pageDocument(name).headline as { answer: string }).answer).replace(/`/g, '');
      await expect(page.locator('#pgdyno-static')).toBeVisible();
      await expect(page.locator('#pgdyno-static')).toContainText(answer);
      await context.close();
    });

    test('prints its answer and leaves out what only a screen can use', async ({ page }) => {
      await open(page, name);
      await page.emulateMedia({ media: 'print' });
      await expect(page.locator('#pgdyno-app article.card .answer')).toBeVisible();
      await expect(page.locator('nav')).toBeHidden();
      await expect(page.locator('main figure .tools').first()).toBeHidden();
    });

    test('leads the Tab key through everything once, and every stop is visible', async ({ page }) => {
      await open(page, name);
      const stops: string[] = [];
      for (let i = 0; i < 600; i += 1) {
        await page.keyboard.press('Tab');
        const stop = await page.evaluate(() => {
          const at = document.activeElement;
          if (!at || at === document.body) {
            return null;
          }
          const box = at.getBoundingClientRect();
          const style = getComputedStyle(at);
          const lit = style.outlineStyle !== 'none' || at.closest(':focus-within') !== null;
          return `${box.width > 0 && box.height > 0 && lit ? '' : 'HIDDEN '}${at.tagName} ${at.id} ${at.textContent?.trim().slice(0, 60)}`;
        });
        if (stop === null) {
          break;
        }
        stops.push(stop);
      }
      expect(stops[0]).toContain('Skip to the answer');
      expect(stops.filter((stop) => stop.startsWith('HIDDEN'))).toEqual([]);
      expect(stops.length).toBeLessThan(600);
    });

    test('keeps its place when the page is loaded again', async ({ page }) => {
      await open(page, name);
      const link = page.locator('nav a').last();
      if ((await link.count()) === 0) {
        return;
      }
      await link.click();
      const hash = new URL(page.url()).hash;
      expect(hash).toContain('at=');
      await page.reload();
      await drawn(page);
      expect(new URL(page.url()).hash).toBe(hash);
      await expect(page.locator('nav a[aria-current]')).toHaveCount(1);
    });
  });
}
