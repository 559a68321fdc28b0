// `pgdyno serve` behind nginx, by the example of docs/serve.md.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { OUT, WEB } from './support/program';
import { end, expect, serve, start, test, watched } from './support/server';

const RUN = ['run', 'quickstart', '--quiet', '-o', '/dev/null'];
const SHORT = ['factors.clients=[1]', 'factors.synchronous_commit=["on"]', 'workload.scale=1', 'load.duration=8s', 'experiment.repeats=1'];

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

/** The block of nginx's configuration that docs/serve.md shows, for a server on that port. */
function example(port: string): string {
  const documented = /^ {4}location [^]*?^ {4}\}$/m.exec(readFileSync(join(WEB, '../docs/serve.md'), 'utf8'));
  return (documented?.[0] ?? '').replace('8088', port);
}

test('under a path of a proxy pages, notes and live runs work', async ({ page }) => {
  test.setTimeout(180_000);
  const trouble = watched(page);
  const server = await serve('quickstart', '--base-path', '/pgdyno');
  const folder = mkdtempSync(join(OUT, 'nginx-'));
  const port = await freePort();
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`);
  const location = example(new URL(server.url).port);
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
events {}
http { access_log off; ${temporary.join(' ')} server { listen 127.0.0.1:${port};\n${location}\n} }\n`,
  );
  const nginx = spawn('nginx', ['-p', folder, '-c', 'nginx.conf', '-e', `${folder}/error.log`], { stdio: 'inherit' });
  const run = start([...RUN, '--store', server.file, ...SHORT.flatMap((pair) => ['--set', pair])]);
  try {
    const base = `http://127.0.0.1:${port}/pgdyno`;
    await expect.poll(() => fetch(`${base}/`).then((answer) => answer.status, () => 0)).toBe(200);
    await page.goto(`${base}/`);
    const row = page.locator('ol.rows > li').last();
    await row.getByRole('button', { name: /Write a note/ }).click();
    await page.keyboard.type('through the proxy');
    await row.getByRole('button', { name: 'Save' }).click();
    await expect(row.locator('.text')).toHaveText('through the proxy');
    await row.locator('a.name').click();
    await expect(page).toHaveURL(new RegExp(`^${base}/runs/`));
    await expect(page.locator('header .text')).toHaveText('through the proxy');
    await page.reload();
    await page.locator('#content[aria-busy=false]').waitFor();
    await page.getByRole('link', { name: 'History', exact: true }).click();
    await expect(page).toHaveURL(new RegExp(`^${base}/history`));
    await expect(page.locator('tbody tr').first()).toBeVisible({ timeout: 30_000 });
    await page.getByRole('link', { name: 'Runs', exact: true }).click();
    await page.getByRole('link', { name: 'Watch it live' }).click({ timeout: 50_000 });
    await expect(page).toHaveURL(new RegExp(`^${base}/live/`));
    await expect(page.locator('.now')).toContainText('tps', { timeout: 60_000 });
    await page.getByRole('link', { name: 'See the result' }).click({ timeout: 90_000 });
    await expect(page.locator('article.card')).toBeVisible();
    expect(trouble).toEqual([]);
  } finally {
    await end(run);
    await end(nginx);
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
