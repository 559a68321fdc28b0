// Documents of a hostile store: markup in every string, absurd numbers, missing parts.
import type { Page } from '@playwright/test';
import { drawn, expect, open, overflow, test } from './support/open';
import { edited, NAMES, pageDocument, type PageName } from './support/pages';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Texts by which a page chooses what it draws. */
const MEANT = new Set(['schema', 'kind', 'tier', 'state', 'percentile', 'group', 'pattern', 'outcome', 'panel', 'aim', 'badge']);
const MARKUP = `</script><script>document.title='owned'</script><img src=x onerror=alert(1)>" onmouseover="alert(1)" \u202e\u0007javascript:alert(1)`;
const ABSURD = [1e308, -1e308, 1e-308, -1, 0, Number.MAX_SAFE_INTEGER];

/** Changes every value below `value`; `key` is the name that it stands under. */
function changed(value: Json, key: string, change: (leaf: Json, key: string) => Json): Json {
  if (Array.isArray(value)) {
    return value.map((item) => changed(item, key, change));
  }
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, changed(item, name, change)]));
  }
  return change(value, key);
}

async function isInert(page: Page): Promise<void> {
  await drawn(page);
  expect(await page.title()).not.toBe('owned');
  const active = await page.locator('#pgdyno-app').evaluate((app) => ({
    scripts: app.querySelectorAll('script, iframe, object, embed, img').length,
    handlers: [...app.querySelectorAll('*')].filter((element) =>
      [...element.attributes].some(({ name, value }) => name.startsWith('on') || /^\s*javascript:/i.test(value)),
    ).length,
  }));
  expect(active).toEqual({ scripts: 0, handlers: 0 });
}

/** Whether each part of the page is drawn, and none is replaced by a message. */
async function hasNoProblem(page: Page): Promise<void> {
  const problems = await page.locator('.problem').allInnerTexts();
  expect(problems).toEqual([]);
}

for (const name of NAMES) {
  test(`${name}: markup in every string stays text`, async ({ page, trouble }) => {
    const hostile = changed(pageDocument(name) as Json, '', (leaf, key) =>
      typeof leaf === 'string' && !MEANT.has(key) ? `${leaf.slice(0, 40)}${MARKUP}` : leaf,
    );
    await page.goto(edited(name, 'markup', hostile));
    await isInert(page);
    await hasNoProblem(page);
    await page.setViewportSize({ width: 390, height: 844 });
    await expect.poll(() => overflow(page)).toBeLessThanOrEqual(0);
    expect(trouble).toEqual([]);
  });

  test(`${name}: absurd numbers are drawn, or said to be none`, async ({ page, trouble }) => {
    let i = 0;
    const keep = /^(index|treatment|to|ordinal|number|session|server|trial|pair|pairs|line|treatments)$/;
    const hostile = changed(pageDocument(name) as Json, '', (leaf, key) =>
      typeof leaf === 'number' && !keep.test(key) ? ABSURD[(i += 1) % ABSURD.length] : leaf,
    );
    await page.goto(edited(name, 'absurd', hostile));
    await isInert(page);
    await hasNoProblem(page);
    const marks = await page.locator('svg.chart').evaluateAll((charts) =>
      charts.flatMap((chart) =>
        [...chart.querySelectorAll('*')].flatMap((mark) =>
          [...mark.attributes].filter(({ value }) => /NaN|Infinity|undefined/.test(value)).map((a) => `${mark.tagName} ${a.name}=${a.value}`),
        ),
      ),
    );
    expect(marks).toEqual([]);
    expect(trouble).toEqual([]);
  });

  test(`${name}: missing parts leave their section out, and nothing else`, async ({ page, trouble }) => {
    const document = pageDocument(name) as { [key: string]: Json };
    const view = document.view as { [key: string]: Json };
    for (const key of Object.keys(view).filter((key) => Array.isArray(view[key]))) {
      view[key] = [];
    }
    await page.goto(edited(name, 'missing', { ...document, view, cautions: [], environment: [], pairs: null }));
    await isInert(page);
    await hasNoProblem(page);
    expect(trouble).toEqual([]);
  });
}

test('a run whose every name is markup is drawn as it is', async ({ page, trouble }) => {
  await open(page, 'hostile');
  await isInert(page);
  await expect(page.locator('body')).toContainText('<script>alert(1)</script>');
  await expect(page.locator('#pgdyno-app .question')).toContainText("</script><script>document.title='owned'</script>");
  expect(trouble).toEqual([]);
});

for (const [what, data, words] of [
  ['no data', '', 'its data are no JSON'],
  ['data of another schema', '{"schema":"pgdyno.page/99"}', 'its data are `pgdyno.page/99`'],
  ['a kind that a later version made', '{"schema":"pgdyno.page/1","kind":"moon","pgdyno_version":"9.9"}', 'cannot draw a page of kind `moon`'],
] as const) {
  test(`a page with ${what} says so, and keeps its plain text`, async ({ page }) => {
    const address = edited('quickstart' satisfies PageName, 'broken', null);
    const { readFileSync, writeFileSync } = await import('node:fs');
    const file = address.replace('file://', '');
    const text = readFileSync(file, 'utf8').replace('id="pgdyno-data">null<', () => `id="pgdyno-data">${data}<`);
    writeFileSync(file, text);
    await page.goto(address);
    await expect(page.locator('.problem')).toContainText(words);
    await expect(page.locator('#pgdyno-static')).toBeVisible();
  });
}
