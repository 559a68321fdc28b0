// The page of a run: its values are those of `pgdyno show --json`, and a reader's choices work.
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { Page } from '@playwright/test';
import type { PairsView, RunPage, RunView, TrialDetail } from '../src/data/types';
import { milliseconds, rate, seconds, significant, times } from '../src/format';
import { figures, STATEMENTS } from '../src/time/intervals';
import { ratiosTo } from '../src/state/selection';
import { drawn, expect, open, test } from './support/open';
import { address, edited, pageDocument, shown, type PageName } from './support/pages';

const rows = (page: Page) => page.locator('#treatments tbody tr');
const row = (page: Page, label: string) => rows(page).filter({ has: page.getByText(label, { exact: true }) });
const chart = (page: Page, title: string) => page.locator('figure').filter({ has: page.getByRole('heading', { name: title, exact: true }) });
const stated = (page: Page, name: string) => new URLSearchParams(new URL(page.url()).hash.slice(1)).get(name);

function detail(name: PageName, trial: number): TrialDetail {
  const page = readFileSync(new URL(address(name)), 'utf8');
  const text = new RegExp(`id="pgdyno-trial-${trial}">([^<]*)<`).exec(page)?.[1] ?? '';
  return JSON.parse(gunzipSync(Buffer.from(text, 'base64')).toString()) as TrialDetail;
}

const markup = (element: Element) => new XMLSerializer().serializeToString(element);

/** Draws over a chart from one share of its width to another. */
async function brush(page: Page, title: string, from: number, to: number): Promise<void> {
  const over = chart(page, title).locator('.u-over');
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  if (!box) {
    throw new Error(`${title} is not drawn`);
  }
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * from, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * ((from + to) / 2), y, { steps: 3 });
  await page.mouse.move(box.x + box.width * to, y, { steps: 3 });
  await page.mouse.up();
}

test.describe('treatments', () => {
  for (const name of ['quickstart', 'sweep', 'why'] as const) {
    test(`${name}: figures are those that pgdyno shows`, { tag: name === 'quickstart' ? '@smoke' : [] }, async ({ page }) => {
      await open(page, name);
      const view = shown<RunView>(name);
      await expect(rows(page)).toHaveCount(view.treatments.length);
      for (const t of view.treatments) {
        const own = row(page, t.label);
        await expect(own.locator('[data-label="tps"] .value')).toHaveText(rate(t.tps?.mean));
        for (const p of ['p50', 'p95', 'p99'] as const) {
          await expect(own.locator(`[data-label="${p} (ms)"]`)).toHaveText(milliseconds(t.latency_us?.[p]));
        }
      }
    });
  }

  test('any treatment can be the baseline, and back undoes it', async ({ page }) => {
    await open(page, 'quickstart');
    const view = shown<RunView>('quickstart');
    const pairs = pageDocument('quickstart').pairs as PairsView;
    for (const base of view.treatments) {
      await row(page, base.label).getByRole('radio').check();
      expect(stated(page, 'base')).toBe(String(base.index));
      const ratios = ratiosTo(pairs, base.index);
      for (const t of view.treatments.filter((t) => t.index !== base.index)) {
        await expect(row(page, t.label).locator('.ratio small')).toContainText(times(ratios.get(t.index)?.value));
      }
    }
    const last = view.treatments[view.treatments.length - 2];
    await page.goBack();
    await expect(row(page, last.label).getByRole('radio')).toBeChecked();
  });

  test('the ratio of tps is one way what it is turned round', async ({ page }) => {
    await open(page, 'why');
    const [a, b] = shown<RunView>('why').treatments;
    await row(page, a.label).getByRole('radio').check();
    const one = parseFloat((await row(page, b.label).locator('.ratio small').innerText()).replace(/,/g, ''));
    await row(page, b.label).getByRole('radio').check();
    const other = parseFloat((await row(page, a.label).locator('.ratio small').innerText()).replace(/,/g, ''));
    expect(one * other).toBeGreaterThan(0.97);
    expect(one * other).toBeLessThan(1.03);
  });

  test('a treatment that is not ticked is drawn nowhere, and the others keep their looks', async ({ page }) => {
    await open(page, 'quickstart');
    const [first, second] = shown<RunView>('quickstart').treatments;
    const legend = chart(page, 'Latency by quantile').locator('figcaption li');
    const before = await legend.filter({ hasText: second.label }).locator('svg').evaluate(markup);
    await row(page, first.label).getByRole('checkbox').uncheck();
    await expect(legend.filter({ hasText: first.label })).toHaveCount(0);
    expect(await legend.filter({ hasText: second.label }).locator('svg').evaluate(markup)).toBe(before);
    await expect(page.locator('#statements thead th')).toHaveCount(shown<RunView>('quickstart').treatments.length);
    await page.reload();
    await expect(row(page, first.label).getByRole('checkbox')).not.toBeChecked();
  });

  test('of many treatments eight are shown, and the rest is found by words', async ({ page }) => {
    await open(page, 'heat');
    const view = shown<RunView>('heat');
    expect(view.treatments.length).toBe(36);
    await expect(rows(page).filter({ has: page.locator('input[type=checkbox]:checked') })).toHaveCount(8);
    const top = [...view.treatments].sort((a, b) => (b.tps?.mean ?? 0) - (a.tps?.mean ?? 0)).slice(0, 8);
    for (const t of top) {
      await expect(row(page, t.label)).toHaveCount(1);
    }
    const other = view.treatments.find((t) => !top.includes(t)) ?? view.treatments[0];
    await page.getByRole('searchbox', { name: /Find among/ }).fill(other.label);
    await expect(row(page, other.label)).toHaveCount(1);
    await row(page, other.label).getByRole('checkbox').click();
    await expect(page.locator('#treatments .problem')).toContainText('take one away');
    await expect(row(page, other.label).getByRole('checkbox')).not.toBeChecked();
    expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeLessThan(9000);
  });

  test('a legend draws the dashes that its chart draws', async ({ page }) => {
    await open(page, 'heat');
    const figure = chart(page, 'Latency by quantile');
    const dashes = (at: string) => figure.locator(at).evaluateAll((lines) => lines.map((l) => l.getAttribute('stroke-dasharray')));
    const drawn = await dashes('svg.chart path.line');
    expect(await dashes('figcaption li line')).toEqual(drawn);
    expect(new Set(drawn).size).toBe(drawn.length);
  });

  test('an interval that the axis cuts ends in an arrow', async ({ page }) => {
    // How wide measured ones are is chance.
    const document = pageDocument('heat');
    const pairs = document.pairs as PairsView;
    const rows = pairs.rows.map(([a, b, ratio, , , ...verdict]) => [a, b, ratio, ratio / 1000, ratio * 1000, ...verdict]);
    await page.goto(edited('heat', 'wide', { ...document, pairs: { ...pairs, rows } }));
    await expect(page.locator('#treatments .ratio path.cut').first()).toBeVisible();
  });
});

test.describe('shape', () => {
  test('a sweep has a point for each treatment, and a point opens its trial', async ({ page }) => {
    await open(page, 'sweep');
    const view = shown<RunView>('sweep');
    const figure = chart(page, 'Throughput over clients');
    await expect(figure.locator('.dot')).toHaveCount(view.treatments.filter((t) => t.tps).length);
    await figure.getByRole('button', { name: 'Numbers of “Throughput over clients” as a table' }).click();
    const cells = await figure.locator('tbody tr').evaluateAll((all) => all.map((tr) => Array.from(tr.children, (td) => td.textContent)));
    for (const t of view.treatments) {
      expect(cells.find((c) => c[0] === t.label)?.[2]).toBe(significant(t.tps?.mean));
    }
    // The band of each curve that has one, and what is said of the curves.
    await expect(figure.locator('.band')).toHaveCount(view.courses.filter((course) => course.curve.length).length);
    const said = view.cautions.filter((caution) => caution.kind === 'course');
    expect(said.length).toBe(view.courses.length);
    for (const caution of said) await expect(page.locator('#shape')).toContainText(caution.text);
    const last = view.treatments[view.treatments.length - 1];
    await figure.locator('.dot').filter({ hasText: `${last.label}:` }).click();
    expect(view.trials[Number(stated(page, 'trial'))].treatment).toBe(last.index);
    await expect(page.locator('#time')).toBeInViewport();
  });

  test('two factors make a grid of all their treatments', async ({ page }) => {
    await open(page, 'heat');
    const view = shown<RunView>('heat');
    await expect(page.locator('#shape .cell')).toHaveCount(36);
    const t = view.treatments[7];
    await expect(page.locator('#shape .cell').filter({ has: page.locator('text', { hasText: rate(t.tps?.mean) }) }).first()).toHaveAttribute('aria-label', /opens/);
    await page.locator('#shape .cell').first().press('Enter');
    expect(stated(page, 'trial')).not.toBeNull();
  });

  test('a search shows the steps that were kept and broken', async ({ page }) => {
    await open(page, 'capacity');
    const view = shown<RunView>('capacity');
    const steps = view.capacity.flatMap((c) => c.curve).filter((p) => p.latency_us_p99 !== null);
    const figure = chart(page, 'p99 over the offered rate');
    await expect(figure.locator('.dot')).toHaveCount(steps.length);
    await expect(figure.locator('.dot path.hollow')).toHaveCount(steps.filter((p) => p.broken !== null).length);
    for (const c of view.capacity) {
      await expect(page.locator('#shape')).toContainText(c.words.replace(/`/g, ''));
    }
  });
});

test.describe('over time', () => {
  test('numbers of the chart are the seconds of the trial', async ({ page }) => {
    await open(page, 'long', '#at=time');
    const { series } = detail('long', 0);
    const figure = chart(page, 'Throughput (tps)');
    await figure.getByRole('button', { name: /Numbers/ }).click();
    const cells = await figure.locator('tbody tr td:nth-child(2)').allInnerTexts();
    expect(cells).toEqual(series.tps.mean.map((v) => significant(v)));
  });

  test('an interval that is drawn has its figures beside the rest', async ({ page }) => {
    await open(page, 'long', '#at=time');
    await brush(page, 'Throughput (tps)', 0.25, 0.5);
    const table = page.locator('table[data-interval]');
    await expect(table).toBeVisible();
    const [from, to] = String(stated(page, 'brush')).split('-').map(Number);
    expect(from).toBeLessThan(to);
    const { statements } = shown<RunView>('long').trials[0];
    const expected = figures(detail('long', 0), statements, [from, to]);
    expect(expected.filter((f) => f.group === STATEMENTS)).toHaveLength(statements.length);
    for (const f of expected) {
      const own = table.locator('tbody').filter({ hasText: f.group }).locator('tr').filter({ has: page.getByRole('rowheader', { name: `${f.name} ${f.unit}`, exact: true }) });
      await expect(own.locator('td').first()).toHaveText(significant(f.interval));
      await expect(own.locator('td').nth(1)).toHaveText(significant(f.rest));
    }
    await page.keyboard.press('Escape');
    await expect(table).toHaveCount(0);
  });

  test('an interval is kept in the address, moved and zoomed to by keyboard', async ({ page }) => {
    await open(page, 'long', '#at=time');
    const end = detail('long', 0).series.t_s.length;
    await page.getByRole('spinbutton', { name: 'From (seconds)' }).fill('10');
    await page.keyboard.press('Tab');
    await page.getByRole('spinbutton', { name: 'To (seconds)' }).fill('20');
    await page.keyboard.press('Tab');
    await expect(page.locator('table[data-interval="10-20"]')).toBeVisible();
    await page.getByRole('button', { name: 'Move the interval on by its length' }).press('Enter');
    await expect(page.locator('table[data-interval="20-30"]')).toBeVisible();
    await page.reload();
    await expect(page.locator('table[data-interval="20-30"]')).toBeVisible();
    const selected = chart(page, 'Throughput (tps)').locator('.u-select');
    const before = (await selected.boundingBox())?.width ?? 0;
    await page.getByRole('button', { name: 'Zoom to it' }).press('Enter');
    await expect.poll(async () => (await selected.boundingBox())?.width ?? 0).toBeGreaterThan(before * (end / 10) * 0.8);
    await page.getByRole('button', { name: 'Whole trial' }).press('Enter');
    await expect.poll(async () => (await selected.boundingBox())?.width ?? 0).toBeCloseTo(before, 0);
  });

  test('the cursor is in step in all charts', async ({ page }) => {
    await open(page, 'long', '#at=time');
    const over = chart(page, 'Throughput (tps)').locator('.u-over');
    await over.hover();
    const box = await over.boundingBox();
    const { series } = detail('long', 0);
    const at = Math.floor(series.t_s.length / 2);
    await expect(chart(page, 'Throughput (tps)').locator('.readout .value')).toHaveText(significant(series.tps.mean[at]));
    const places = await page.locator('#time .u-cursor-x').evaluateAll((all) => all.map((c) => Math.round(c.getBoundingClientRect().x - (c.parentElement?.getBoundingClientRect().x ?? 0))));
    expect(places[0]).toBeCloseTo((box?.width ?? 0) / 2, -1);
    expect(new Set(places.slice(0, 3)).size).toBe(1);
  });

  test('marks tell of checkpoints in the order of the server’s log', async ({ page }) => {
    await open(page, 'long', '#at=time');
    const events = (shown<RunView>('long').trials[0].events ?? []).filter((e) => e.kind === 'checkpoint complete' && (e.t_s ?? -1) >= 0);
    expect(events.length).toBeGreaterThan(0);
    await page.locator('#time summary', { hasText: 'events' }).click();
    for (const event of events) {
      await expect(page.locator('#time .list')).toContainText(`complete at ${seconds(event.t_s)} s`);
    }
  });

  test('a second trial is laid under, in the colour of its treatment', async ({ page }) => {
    await open(page, 'quickstart', '#at=time');
    const [first, second] = shown<RunView>('quickstart').treatments;
    await page.getByRole('combobox', { name: /^Trial of/ }).first().selectOption({ label: first.label });
    await page.getByRole('combobox', { name: /^Lay under it/ }).first().selectOption({ label: second.label });
    const lines = chart(page, 'Throughput (tps)').locator('.readout line');
    await expect(lines).toHaveCount(2);
    const colours = await lines.evaluateAll((all) => all.map((l) => getComputedStyle(l).stroke));
    expect(colours[0]).not.toBe(colours[1]);
  });

  test('idle backends are left out of the waits, which are grey but for one', async ({ page }) => {
    // In a trial of a second the one sample may find every backend idle.
    await open(page, 'long', '#at=time');
    const names = page.locator('[data-panel="wait_events"] .readout li');
    await expect(names.first()).toBeVisible();
    expect((await names.allInnerTexts()).join()).not.toContain('ClientRead');
  });
});

test.describe('why', () => {
  test('bars are the parts that pgdyno shows, and a wait event filters the time axis', async ({ page }) => {
    await open(page, 'why', '#at=why');
    const [why] = shown<RunView>('why').why;
    const figure = chart(page, 'Latency by statement');
    await expect(figure.locator('.part')).toHaveCount(Math.min(why.latency?.parts.length ?? 0, 10));
    await figure.getByRole('button', { name: /Numbers/ }).click();
    const gaps = await figure.locator('tbody td:nth-child(4)').allInnerTexts();
    expect(gaps).toEqual([why.latency?.gap_us.value, ...(why.latency?.parts ?? []).map((p) => p.gap_us.value)].map((v) => significant(v)));
    await chart(page, 'Active time by wait event').locator('.part').first().press('Enter');
    await expect(page.locator('#time')).toBeInViewport();
    await expect(page.locator('#time [data-panel]')).toHaveCount(2);
    await page.getByRole('button', { name: 'Show all charts' }).click();
    expect(await page.locator('#time [data-panel]').count()).toBeGreaterThan(2);
  });
});

test('a run of 1,000 trials draws eight treatments, and lists the others when asked', async ({ page }) => {
  const made = pageDocument('heat') as unknown as RunPage;
  const { view } = made;
  view.plan.factors.push('copy');
  const copies = Array.from({ length: 14 }, (_, copy) => copy);
  view.treatments = copies.flatMap((copy) =>
    view.treatments.map((t, i) => ({ ...t, index: copy * 36 + i, label: `${t.label} copy=${copy}`, factors: { ...t.factors, copy: `c${copy}` } })),
  );
  view.trials = copies.flatMap((copy) =>
    view.trials.map((t, i) => ({ ...t, ordinal: copy * 72 + i, treatment: copy * 36 + t.treatment })),
  );
  expect(view.trials.length).toBeGreaterThan(1000);
  await page.goto(edited('heat', 'thousand', made));
  await drawn(page);
  await expect(page.locator('#treatments input[type=checkbox]:checked')).toHaveCount(8);
  expect(await page.evaluate(() => document.querySelectorAll('*').length)).toBeLessThan(6000);
  await page.getByText(/^All trials/).click();
  await expect(page.locator('#plan tbody tr')).toHaveCount(view.trials.length);
});

test('statements stand in one table, a column for each treatment', async ({ page }) => {
  await open(page, 'quickstart');
  const view = shown<RunView>('quickstart');
  const table = page.locator('#statements table');
  await expect(table).toHaveCount(1);
  const means = await table.locator('tbody tr').evaluateAll((all) => all.map((tr) => Array.from(tr.querySelectorAll('td'), (td) => td.textContent)));
  expect(means).toEqual(view.treatments[0].statements.map((_, i) => view.treatments.map((t) => milliseconds(t.statements[i].latency_us?.mean))));
});

for (const kind of ['SVG', 'PNG'] as const) {
  test(`charts are saved as ${kind}`, async ({ page }) => {
    await open(page, 'sweep');
    for (const title of ['Throughput over clients', 'Latency by quantile', 'Throughput (tps)']) {
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: `Save “${title}” as ${kind}` }).click(),
      ]);
      const bytes = readFileSync(await file.path());
      if (kind === 'PNG') {
        expect(bytes.subarray(1, 4).toString()).toBe('PNG');
        // Width and height: two pixels for one.
        expect(bytes.readUInt32BE(16)).toBeGreaterThan(600);
      } else {
        const text = bytes.toString();
        expect(text).toContain(title);
        expect(text).not.toContain('var(--');
        expect(text).not.toMatch(/<script|on[a-z]+=/);
        expect(text.match(/<path /g)?.length ?? 0).toBeGreaterThan(0);
      }
    }
  });
}

test('numbers can be copied as a table', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await open(page, 'sweep');
  const figure = chart(page, 'Throughput over clients');
  await figure.getByRole('button', { name: /Numbers/ }).click();
  await figure.getByRole('button', { name: 'Copy the table' }).click();
  await expect(figure.getByRole('button', { name: 'copied' })).toBeVisible();
});

test('colours follow the scheme, and verdicts have none', async ({ page }) => {
  await open(page, 'quickstart');
  const colour = () => page.locator('#treatments tbody svg line').first().evaluate((l) => getComputedStyle(l).stroke);
  const light = await colour();
  await page.emulateMedia({ colorScheme: 'dark' });
  await expect.poll(colour).not.toBe(light);
});

test('a browser without DecompressionStream is told where the chart would be', async ({ page }) => {
  await page.addInitScript(() => {
    delete (globalThis as { DecompressionStream?: unknown }).DecompressionStream;
  });
  await open(page, 'quickstart');
  await expect(page.locator('#time .problem')).toContainText('DecompressionStream');
  await expect(rows(page).first()).toBeVisible();
});
