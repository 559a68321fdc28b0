// `pgdyno serve`: a run at work from its start to its end, one that is stopped, one that is killed.
import { overflow, serious, tabTo } from './support/open';
import { pgdyno } from './support/program';
import { hostile } from './support/stores';
import { end, expect, serve, start, test, watched } from './support/server';

const RUN = ['run', 'quickstart', '--quiet', '-o', '/dev/null'];
const SHORT = ['factors.clients=[1,2]', 'factors.synchronous_commit=["on"]', 'workload.scale=1', 'load.warm_up=1s', 'telemetry.fsync=200ms'];
const sets = (...more: string[]) => [...SHORT, ...more].flatMap((pair) => ['--set', pair]);

/** Opens the live run of the list. */
async function watch(page: import('@playwright/test').Page, url: string): Promise<void> {
  await page.goto(url);
  await page.getByRole('link', { name: 'Watch it live' }).click({ timeout: 50_000 });
  await expect(page).toHaveURL(/\/live\//);
}

test('a live run is watched from its start to its end', async ({ page }) => {
  test.setTimeout(180_000);
  const trouble = watched(page);
  const server = await serve('quickstart');
  const run = start([...RUN, '--store', server.file, ...sets('load.duration=5s', 'experiment.repeats=1')]);
  try {
    await watch(page, server.url);
    await expect(page.locator('.now')).toContainText('tps', { timeout: 60_000 });
    await expect(page.locator('[data-panel=tps] canvas')).toBeVisible();
    await expect(page.locator('.state')).toContainText(/ left\s*\d of 2 trials/);
    // Second by second.
    const elapsed = async () => Number.parseInt((await page.locator('.now dd').first().textContent()) ?? '', 10);
    const seen = await elapsed();
    await expect.poll(elapsed, { timeout: 20_000 }).not.toBe(seen);
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await overflow(page)).toBeLessThanOrEqual(0);
    expect(await serious(page)).toEqual([]);
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await serious(page)).toEqual([]);
    await expect(page.getByRole('button', { name: /End after/ })).toHaveCount(0);
    await expect(page.locator('.state')).toContainText('Ended: completed', { timeout: 90_000 });
    expect(await serious(page)).toEqual([]);
    await page.emulateMedia({ colorScheme: 'light' });
    expect(await serious(page)).toEqual([]);
    await page.getByRole('link', { name: 'See the result' }).click({ timeout: 90_000 });
    await expect(page).toHaveURL(/\/runs\//);
    await expect(page.locator('article.card')).toBeVisible();
    expect(trouble).toEqual([]);
  } finally {
    await end(run);
    await server.stop();
  }
});

test('a run that ends by itself says how far it is, and is stopped after its trial where that is allowed', async ({ page }) => {
  test.setTimeout(240_000);
  const server = await serve('quickstart', '--allow-control');
  const run = start([...RUN, '--store', server.file, ...sets('load.duration=2s', 'experiment.precision=1%')]);
  try {
    await watch(page, server.url);
    await expect(page.locator('.outlook')).toContainText('comparisons decided after', { timeout: 120_000 });
    // By the keyboard alone.
    await tabTo(page, page.getByRole('button', { name: 'End after this trial' }));
    await page.keyboard.press('Enter');
    await tabTo(page, page.getByRole('button', { name: 'Really end it after this trial' }));
    await page.keyboard.press('Enter');
    await expect(page.locator('.state')).toContainText('Ended: interrupted', { timeout: 90_000 });
  } finally {
    await end(run);
    await server.stop();
  }
});

test('a run that is killed is said to have died', async ({ page }) => {
  test.setTimeout(180_000);
  const server = await serve('quickstart');
  const run = start([...RUN, '--store', server.file, ...sets('load.duration=60s', 'experiment.repeats=1')]);
  try {
    await watch(page, server.url);
    await expect(page.locator('.now')).toBeVisible({ timeout: 60_000 });
    await end(run, 'SIGKILL');
    await expect(page.locator('.state')).toContainText('Its process died', { timeout: 30_000 });
    await expect(page.getByText('pgdyno run --resume')).toBeVisible();
    expect(await serious(page)).toEqual([]);
  } finally {
    await end(run, 'SIGKILL');
    // Its PostgreSQL goes on until the next start of pgdyno, or this.
    pgdyno(['clean']);
    await server.stop();
  }
});

test('a hostile run stays text while it works', async ({ page }) => {
  test.setTimeout(180_000);
  const trouble = watched(page);
  const server = await serve('quickstart');
  const run = start(['run', hostile(), '--quiet', '-o', '/dev/null', '--store', server.file, '--set', 'load.duration=3s']);
  try {
    await watch(page, server.url);
    await expect(page.locator('.now')).toContainText('tps', { timeout: 60_000 });
    await expect(page.locator('.question')).toContainText("</script><script>document.title='owned'</script>");
    await expect(page.locator('#trial-title')).toContainText('<b>factor</b>&amp;');
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await overflow(page)).toBeLessThanOrEqual(0);
    expect(await page.title()).not.toBe('owned');
    expect(await page.locator('#pgdyno-app :is(script, iframe, object, embed, img)').count()).toBe(0);
    expect(trouble).toEqual([]);
  } finally {
    await end(run);
    await server.stop();
  }
});
