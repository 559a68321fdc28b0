// Opens pages as a reader does, and notes what a reader must never meet.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test as base, type Locator, type Page } from '@playwright/test';
import { address, type PageName } from './pages';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What went wrong on a page: errors, refused scripts and styles, dialogs, requests. */
export type Trouble = string[];

/** Notes errors, refused scripts, dialogs, and requests to addresses that do not match `own`. */
export function troubleOn(page: Page, own: RegExp): Trouble {
  const found: Trouble = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) {
      found.push(`${message.type()}: ${message.text()}`);
    }
  });
  page.on('pageerror', (error) => found.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => {
    found.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    if (!own.test(request.url())) {
      found.push(`request: ${request.url()}`);
    }
  });
  return found;
}

/** Test with a list of what went wrong in its page; nothing may. */
export const test = base.extend<{ trouble: Trouble }>({
  trouble: async ({ page }, use) => {
    const found = troubleOn(page, /^(file|data|blob):/);
    await use(found);
    base.expect(found).toEqual([]);
  },
});
export const expect = base.expect;

/** Opens a page and waits until it is drawn. */
export async function open(page: Page, name: PageName, hash = ''): Promise<void> {
  await page.goto(address(name, hash));
  await drawn(page);
}

/** Waits until the page is drawn in place of its plain text. */
export async function drawn(page: Page): Promise<void> {
  await page.locator('#pgdyno-static').waitFor({ state: 'hidden' });
  await page.locator('#content[aria-busy=false]').waitFor();
}

interface Finding {
  impact: string | null;
  id: string;
  nodes: { html: string; failureSummary?: string }[];
}

/** Serious and critical findings of axe-core. */
export async function serious(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const axe = (globalThis as unknown as { axe: { run(): Promise<{ violations: unknown[] }> } }).axe;
    return (await axe.run()).violations;
  });
  return (found as Finding[])
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.length} × ${nodes[0].html.slice(0, 200)}\n${nodes[0].failureSummary ?? ''}`);
}

/** Pixels by which a page is wider than its window. */
export async function overflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

/** Presses Tab until `wanted` has the focus, as who has no mouse does. */
export async function tabTo(page: Page, wanted: Locator): Promise<void> {
  const stops = 80;
  for (let i = 0; i < stops; i += 1) {
    if (await wanted.evaluate((element) => element === document.activeElement)) {
      return;
    }
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab does not lead to ${wanted}`);
}
