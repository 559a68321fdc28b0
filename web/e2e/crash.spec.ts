// Crash tests: the grid of rounds and what a round opens.
import type { CrashView, Round } from '../src/data/types';
import { expect, open, overflow, serious, test } from './support/open';
import { pageDocument, shown } from './support/pages';

/** The view of the page: seeds are text in it. */
const view = (name: 'crash' | 'crashfail') => pageDocument(name).view as CrashView;

test('the grid has every round with the verdict that the JSON has', async ({ page, trouble }) => {
  await open(page, 'crash');
  const planted = new Map(shown<CrashView>('crash').faults.map((fault) => [fault.fault, fault.planted]));
  const expected = shown<CrashView>('crash').faults.flatMap((fault) =>
    fault.each.map((round) => {
      const verdict = fault.planted ? round.verdict.replace('FAIL', 'as planted') : round.verdict;
      return `${fault.fault}, round ${round.number}: ${verdict}`;
    }),
  );
  const buttons = page.locator('button.round');
  await expect(buttons).toHaveCount(expected.length);
  const names = await buttons.evaluateAll((all) =>
    all.map((button) => {
      const label = button.getAttribute('aria-label') ?? '';
      return `${/^(.*?, round \d+)/.exec(label)?.[1]}: ${button.getAttribute('data-verdict')}`;
    }),
  );
  expect(names.sort()).toEqual(expected.sort());
  expect(planted.get('emulated-lie')).toBe(true);
  expect(trouble).toEqual([]);
});

test('a planted failure and a control are told from a failure', async ({ page }) => {
  await open(page, 'crash');
  const row = page.locator('.grid tbody tr', { hasText: 'emulated-lie' });
  await expect(row).toContainText('planted');
  await expect(row.locator('button[data-verdict^="as planted"]').first()).toBeVisible();
  await expect(page.locator('button[data-verdict^="FAIL"]')).toHaveCount(0);
  const controls = shown<CrashView>('crash').controls;
  await expect(page.locator('#safety [data-seen]')).toHaveCount(controls.length);
  await expect(page.locator('#safety [data-seen="true"]')).toHaveCount(controls.filter((c) => c.seen).length);
});

test('a round opens with its figures, its log, its checks and the command that repeats it', async ({ page }) => {
  await open(page, 'crash');
  const fault = view('crash').faults.find((f) => f.fault === 'power')!;
  const round: Round = fault.each[1];
  await page.getByRole('button', { name: new RegExp(`^power, round ${round.number},`) }).click();
  const detail = page.getByRole('region', { name: `Round ${round.number} of power` });
  await expect(detail).toBeVisible();
  await expect(detail.locator('dl')).toContainText(String(round.seed));
  await expect(detail.locator('dl')).toContainText(round.acknowledged.toLocaleString('en-US'));
  await expect(detail).toContainText(round.command!);
  if (round.log) {
    await expect(detail.locator('pre').last()).toContainText(round.log.split('\n')[0].trim());
  }
  const passed = round.checks.filter((check) => check.outcome === 'passed').length;
  await expect(detail).toContainText(`${passed} of ${round.checks.length} checks passed`);
  await expect(page).toHaveURL(new RegExp(`round=0\\.power\\.${round.number}`));
});

test('seeds beyond 2^53 keep their digits', async ({ page }) => {
  await open(page, 'crash');
  expect(typeof view('crash').seed).toBe('string');
  expect(view('crash').seed).toBe('4611686018427387905');
  await expect(page.locator('#faults')).toContainText('4611686018427387905');
});

test('rounds are reached by the keyboard alone', async ({ page }) => {
  await open(page, 'crash');
  await page.locator('button.round[tabindex="0"]').focus();
  const first = await page.locator(':focus').getAttribute('aria-label');
  await page.keyboard.press('ArrowRight');
  const second = await page.locator(':focus').getAttribute('aria-label');
  expect(second).not.toBe(first);
  await page.keyboard.press('Enter');
  await expect(page.locator(':focus')).toHaveAttribute('aria-expanded', 'true');
  await page.keyboard.press('Enter');
  await expect(page.locator(':focus')).toHaveAttribute('aria-expanded', 'false');
  await page.keyboard.press('End');
  const last = view('crash').faults.at(-1)!;
  await expect(page.locator(':focus')).toHaveAttribute('aria-label', new RegExp(`^${last.fault},`));
  await expect(page.locator('button.round[tabindex="0"]')).toHaveCount(1);
});

test('the first failure stands open with the ledger around what is missing', async ({ page }) => {
  await open(page, 'crashfail');
  const failed = view('crashfail').faults[0].each.find((round) => round.verdict.startsWith('FAIL'))!;
  const detail = page.getByRole('region', { name: `Round ${failed.number} of power` });
  await expect(detail).toBeVisible();
  if (failed.ledger) {
    await expect(detail.getByLabel('From the ledger')).toContainText(failed.ledger.split('\n')[0].trim());
  }
  for (const check of failed.checks.filter((c) => c.outcome === 'failed')) {
    await expect(detail).toContainText(check.name);
  }
});

test('an open round stays open in a link, on a phone and in the dark', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.emulateMedia({ colorScheme: 'dark' });
  await open(page, 'crash', '#at=safety&round=0.process.1');
  await expect(page.getByRole('region', { name: 'Round 1 of process' })).toBeVisible();
  expect(await overflow(page)).toBeLessThanOrEqual(0);
  expect(await serious(page)).toEqual([]);
});

test('every figure of the faults stands on a phone too', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await open(page, 'crash');
  for (const fault of shown<CrashView>('crash').faults) {
    await expect(page.locator('#faults table')).toContainText(fault.acknowledged.toLocaleString('en-US'));
  }
  const cut = await page.locator('#faults td').evaluateAll(
    (cells) => cells.filter((cell) => cell.getBoundingClientRect().right > document.documentElement.clientWidth).length,
  );
  expect(cut).toBe(0);
});
