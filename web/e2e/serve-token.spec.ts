// `pgdyno serve` with a token: who follows a link gets in, whatever page the link is on.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { OUT } from './support/program';
import { expect, serve, test } from './support/server';

const TOKEN = '0123456789abcdef-secret';

test('a link with the token lets in from a page of another site, and the token leaves the URL', async ({ page, context }) => {
  const folder = mkdtempSync(join(OUT, 'token-'));
  const file = join(folder, 'token');
  writeFileSync(file, TOKEN, { mode: 0o600 });
  const server = await serve('quickstart', '--token-file', file);
  // Another name of this machine is another site.
  const elsewhere = createServer((_, answer) => {
    answer.setHeader('content-type', 'text/html');
    answer.end(`<!doctype html><title>chat</title><a href="${server.url}/?token=${TOKEN}">look</a>`);
  });
  await new Promise<void>((done) => elsewhere.listen(0, '127.0.0.1', done));
  const chat = `http://localhost:${(elsewhere.address() as AddressInfo).port}/`;
  try {
    await page.goto(server.url);
    await expect(page.getByText('the token is missing')).toBeVisible();
    await page.goto(chat);
    await page.getByRole('link', { name: 'look' }).click();
    await expect(page.locator('ol.rows > li').first()).toBeVisible();
    expect(page.url()).toBe(`${server.url}/`);
    // Notes and everything else go by the cookie.
    const row = page.locator('ol.rows > li').first();
    await row.getByRole('button', { name: /Write a note/ }).click();
    await page.keyboard.type('from a link');
    await row.getByRole('button', { name: 'Save' }).click();
    await expect(row.locator('.text')).toHaveText('from a link');
    const [cookie] = await context.cookies(server.url);
    expect([cookie.httpOnly, cookie.sameSite]).toEqual([true, 'Lax']);
    // A typed address needs no token any more.
    await page.goto(`${server.url}/history`);
    await expect(page.getByRole('heading', { name: 'History' })).toBeVisible();
  } finally {
    elsewhere.close();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
