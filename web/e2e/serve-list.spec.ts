// `pgdyno serve`: the list of runs, notes, pages of results, histories and comparisons.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { overflow, serious, tabTo } from './support/open';
import { OUT, pgdyno } from './support/program';
import { expect, test } from './support/server';

interface Listed {
  id: string;
  recipe: string;
  started_at: string;
}
const SETS = ['load.duration=2s', 'load.warm_up=100ms', 'load.rate=50', 'workload.scale=1', 'experiment.repeats=1', 'factors.clients=[1]'];
/** One more run of the store's recipe, at a rate of its own. */
const RUN = ['run', 'quickstart', '--quiet', '-o', '/dev/null', ...SETS.flatMap((pair) => ['--set', pair])];
const runs = (file: string) =>
  (JSON.parse(pgdyno(['list', '--json', '--store', file])) as Listed[]).sort((a, b) => b.started_at.localeCompare(a.started_at));

test('lists every run with its answer, the newest first', { tag: '@smoke' }, async ({ page, server, trouble }) => {
  await page.goto(server.url);
  const rows = page.locator('ol.rows > li');
  const all = runs(server.file);
  await expect(rows).toHaveCount(all.length);
  expect(await rows.evaluateAll((list) => list.map((row) => row.getAttribute('data-id')))).toEqual(all.map((run) => run.id));
  for (const [i, run] of all.entries()) {
    const { headline } = JSON.parse(pgdyno(['show', run.id, '--json', '--store', server.file])) as { headline: { answer: string } };
    await expect(rows.nth(i)).toContainText(headline.answer.replace(/`/g, '').slice(0, 60), { timeout: 30_000 });
    await expect(rows.nth(i).locator('svg')).toBeVisible();
  }
  expect(trouble).toEqual([]);
});

test('what is searched stands in the URL, and comes back with it', async ({ page, server }) => {
  await page.goto(server.url);
  const [newest] = runs(server.file);
  await page.getByLabel('Search').fill(newest.id);
  await expect(page.locator('ol.rows > li')).toHaveCount(1);
  expect(new URL(page.url()).searchParams.get('q')).toBe(newest.id);
  await page.reload();
  await expect(page.locator('ol.rows > li')).toHaveCount(1);
  await page.getByRole('button', { name: 'Show all' }).click();
  await expect(page.locator('ol.rows > li')).toHaveCount(runs(server.file).length);
});

test('what is filtered and ordered stands in the URL, and comes back with it', async ({ page, server, trouble }) => {
  await page.goto(server.url);
  const rows = page.locator('ol.rows > li');
  const ids = () => rows.evaluateAll((list) => list.map((row) => row.getAttribute('data-id')));
  const all = runs(server.file).map((run) => run.id);
  await expect(rows).toHaveCount(all.length);
  await page.getByLabel('Order').selectOption('oldest');
  await expect.poll(ids).toEqual(all.toReversed());
  await page.reload();
  await expect.poll(ids).toEqual(all.toReversed());
  await page.getByLabel('Kind').selectOption('probe');
  await expect(rows).toHaveCount(0);
  const { searchParams } = new URL(page.url());
  expect([searchParams.get('kind'), searchParams.get('sort')]).toEqual(['probe', 'oldest']);
  await page.getByRole('button', { name: 'Show all' }).click();
  await expect(rows).toHaveCount(all.length);
  expect(trouble).toEqual([]);
});

test('a note and its tags are written in place, found, and kept as text', async ({ page, server, trouble }) => {
  await page.goto(server.url);
  const [newest] = runs(server.file);
  const row = page.locator(`ol.rows > li[data-id="${newest.id}"]`);
  await row.getByRole('button', { name: /Write a note/ }).click();
  await expect(page.locator(':focus')).toHaveJSProperty('tagName', 'TEXTAREA');
  await page.keyboard.type('<img src=x onerror=alert(1)> new cable');
  await row.getByLabel(/Tags/).fill('lab, <b>slow</b>');
  await row.getByRole('button', { name: 'Save' }).click();
  await expect(row.locator('.text')).toHaveText('<img src=x onerror=alert(1)> new cable');
  await page.reload();
  await expect(row.locator('.tag')).toHaveText(['lab', '<b>slow</b>']);
  await page.getByLabel('Search').fill('CABLE');
  await expect(page.locator('ol.rows > li')).toHaveCount(1);
  await row.getByRole('link', { name: newest.recipe }).first().click();
  await expect(page.locator('header .text')).toHaveText('<img src=x onerror=alert(1)> new cable');
  expect(trouble).toEqual([]);
});

test('a result has the page of its report, and a trial opens', { tag: '@smoke' }, async ({ page, server, trouble }) => {
  const [newest] = runs(server.file);
  await page.goto(`${server.url}/runs/${newest.id}`);
  await page.locator('#content[aria-busy=false]').waitFor();
  await expect(page.locator('header h1')).toContainText(newest.id);
  await page.locator('#treatments tbody .value').first().click();
  await expect(page).toHaveURL(/trial=/);
  await expect(page.locator('#time canvas').first()).toBeVisible();
  await page.goBack();
  await expect(page).not.toHaveURL(/trial=/);
  expect(trouble).toEqual([]);
});

test('two runs of the list are compared', async ({ page, server, trouble }) => {
  await page.goto(server.url);
  const [b, a] = runs(server.file);
  await page.getByLabel(`Compare ${a.id}`).check();
  await page.getByLabel(`Compare ${b.id}`).check();
  await page.getByRole('link', { name: `Compare ${a.id} with ${b.id}` }).click();
  await expect(page).toHaveURL(`${server.url}/compare?a=${a.id}&b=${b.id}`);
  await expect(page.locator('article.card')).toBeVisible();
  expect(trouble).toEqual([]);
});

test('two runs that differ in what must be equal are compared by that, or all the same', async ({ page, server }) => {
  test.setTimeout(120_000);
  pgdyno([...RUN, '--store', server.file]);
  const [b, a] = runs(server.file);
  const comparison = `${server.url}/compare?a=${a.id}&b=${b.id}`;
  await page.goto(comparison);
  await expect(page.getByRole('alert')).toContainText('what must be equal is not');
  expect(await serious(page)).toEqual([]);
  await page.getByRole('link', { name: /^Compare them by / }).click();
  await expect(page).toHaveURL(/[?&]by=/);
  await expect(page.locator('article.card')).toBeVisible();
  await page.goto(comparison);
  await page.getByRole('link', { name: 'Compare them all the same' }).click();
  await expect(page).toHaveURL(/[?&]force=true/);
  await expect(page.locator('article.card')).toBeVisible();
});

test('two treatments are compared on a page that fits a phone', async ({ page, server, trouble }) => {
  const [run] = runs(server.file);
  const query = new URLSearchParams({ a: `${run.id}:1`, b: `${run.id}:2`, by: 'clients,synchronous_commit', force: 'true' });
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${server.url}/compare?${query.toString()}`);
  await expect(page.locator('article.card')).toBeVisible();
  await expect(page.getByRole('link', { name: `${run.id}:2` })).toHaveAttribute('href', `/runs/${run.id}`);
  expect(await overflow(page)).toBeLessThanOrEqual(0);
  expect(await serious(page)).toEqual([]);
  expect(trouble).toEqual([]);
});

test('a history has every run of its recipe, and a point opens its run', async ({ page, server, trouble }) => {
  await page.goto(`${server.url}/history?recipe=quickstart`);
  const all = runs(server.file);
  await expect(page.locator('tbody tr')).toHaveCount(all.length, { timeout: 30_000 });
  const points = page.locator('svg.chart .dot');
  await expect(points).toHaveCount(all.length);
  await points.first().focus();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/runs\//);
  expect(trouble).toEqual([]);
});

test('a history tells two machines apart by their markers', async ({ page, server, trouble }) => {
  test.setTimeout(120_000);
  pgdyno([...RUN, '--store', server.file], 'elsewhere');
  await page.goto(`${server.url}/history?recipe=quickstart`);
  await expect(page.locator('tbody tr')).toHaveCount(runs(server.file).length, { timeout: 30_000 });
  await expect(page.locator('.legend').first()).toContainText('elsewhere');
  const markers = page.locator('svg.chart').first().locator('.dot > path:last-of-type');
  const shapes = await markers.evaluateAll((paths) => paths.map((path) => path.getAttribute('d')));
  expect(new Set(shapes).size).toBe(2);
  expect(await serious(page)).toEqual([]);
  expect(trouble).toEqual([]);
});

test('the list is used by the keyboard alone', async ({ page, server, trouble }) => {
  await page.goto(server.url);
  const rows = page.locator('ol.rows > li');
  await rows.first().waitFor();
  const [b, a] = runs(server.file);
  const row = page.locator(`ol.rows > li[data-id="${b.id}"]`);

  await tabTo(page, row.getByRole('button', { name: /Write a note/ }));
  await page.keyboard.press('Enter');
  await page.keyboard.type('by hand');
  await tabTo(page, row.getByLabel(/Tags/));
  await page.keyboard.type('keys');
  await tabTo(page, row.getByRole('button', { name: 'Save' }));
  await page.keyboard.press('Enter');
  await expect(row.locator('.text')).toHaveText('by hand');

  await page.reload();
  await rows.first().waitFor();
  await tabTo(page, page.getByLabel('Search'));
  await page.keyboard.type('keys');
  await expect(rows).toHaveCount(1);
  await tabTo(page, page.getByRole('button', { name: 'Show all' }));
  await page.keyboard.press('Enter');
  await expect(rows).toHaveCount(runs(server.file).length);
  await tabTo(page, page.getByLabel('Order'));
  await page.keyboard.press('o');
  await expect(rows.first()).not.toHaveAttribute('data-id', b.id);

  await page.goto(server.url);
  await rows.first().waitFor();
  await tabTo(page, page.getByLabel(`Compare ${b.id}`));
  await page.keyboard.press('Space');
  await tabTo(page, page.getByLabel(`Compare ${a.id}`));
  await page.keyboard.press('Space');
  await tabTo(page, page.getByRole('link', { name: `Compare ${b.id} with ${a.id}` }));
  await page.keyboard.press('Enter');
  await expect(page.locator('article.card')).toBeVisible();

  await page.goBack();
  await rows.first().waitFor();
  await tabTo(page, row.locator(`a[href="/runs/${b.id}"]`).first());
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(`${server.url}/runs/${b.id}`);
  await expect(page.locator('header h1')).toBeVisible();
  expect(trouble).toEqual([]);
});

for (const path of ['/', '/history?recipe=quickstart', '/runs/latest', '/moon']) {
  for (const colorScheme of ['light', 'dark'] as const) {
    test(`${path} fits a phone and has no serious finding in ${colorScheme}`, async ({ page, server }) => {
      await page.setViewportSize({ width: 390, height: 844 });
      await page.emulateMedia({ colorScheme });
      await page.goto(server.url + path);
      await page.locator('#content:not([aria-busy=true])').waitFor();
      expect(await overflow(page)).toBeLessThanOrEqual(0);
      expect(await serious(page)).toEqual([]);
    });
  }
}

test('a history is there although the list of runs comes later', async ({ page, server }) => {
  await page.route('**/api/runs', async (route) => {
    await page.locator('figure').first().waitFor();
    await route.continue();
  });
  await page.goto(`${server.url}/history?recipe=quickstart`);
  await expect(page.locator('select').first()).toBeVisible();
  await expect(page.locator('#content')).toHaveAttribute('aria-busy', 'false');
});

test.describe('a hostile store', () => {
  test.use({ served: 'hostile' });

  test('stays text in list, pages, history and comparison', async ({ page, server, trouble }) => {
    const markup = `<img src=x onerror=document.title='owned'>`;
    const folder = mkdtempSync(join(OUT, 'hostile-'));
    mkdirSync(join(folder, markup));
    writeFileSync(join(folder, `${markup}.txt`), `tps = 1000.0 ${markup}\n\nFilesystem | tps\n${markup} | 1000\nxfs | 900\n`);
    pgdyno(['fsync', join(folder, markup), '--duration', '50ms', '--store', server.file]);
    pgdyno(['audit', join(folder, `${markup}.txt`), '--store', server.file]);
    rmSync(folder, { recursive: true });
    await page.goto(server.url);
    const results = page.locator('ol.rows > li');
    await expect(results).toHaveCount(3);
    await expect(results.filter({ hasText: markup })).toHaveCount(2);
    const ids = await results.evaluateAll((list) => list.map((row) => row.getAttribute('data-id')));
    const compared = '/compare?a=latest:1&b=latest:2&force=true';
    for (const path of ['/', '/history', '/history?recipe=hostile', compared, ...ids.map((id) => `/runs/${id}`)]) {
      await page.goto(server.url + path);
      await page.locator('#content:not([aria-busy=true])').waitFor();
      expect(await page.title()).not.toBe('owned');
      expect(await page.locator('#pgdyno-app :is(script, iframe, object, embed, img)').count()).toBe(0);
    }
    expect(trouble).toEqual([]);
  });
});

test.describe('crash tests that found a loss', () => {
  test.use({ served: 'crashfail' });

  test('look like that in the list', async ({ page, server, trouble }) => {
    await page.goto(server.url);
    await expect(page.locator('ol.rows > li .badge.heavy')).toHaveText(/fail/i);
    expect(await serious(page)).toEqual([]);
    expect(trouble).toEqual([]);
  });
});

test('what is not in the store is said to be missing', async ({ page, server }) => {
  await page.goto(`${server.url}/runs/moon`);
  await expect(page.locator('.problem')).toContainText('moon');
});
