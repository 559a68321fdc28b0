// A real `pgdyno serve` on a copy of a store, for one test.
import { spawn, type ChildProcess } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test as base, type Page } from '@playwright/test';
import { troubleOn, type Trouble } from './open';
import { environment, OUT, PGDYNO } from './program';
import { store } from './stores';

export interface Server {
  /** `http://127.0.0.1:PORT`. */
  url: string;
  /** The store that it serves. */
  file: string;
}

/** Runs the program in the background. */
export function start(args: string[]): ChildProcess {
  return spawn(PGDYNO, args, { env: environment(), stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Resolves to the first text that matches `wanted` in what `child` prints. */
export function printed(child: ChildProcess, wanted: RegExp): Promise<string> {
  return new Promise((done, failed) => {
    let all = '';
    const look = (data: Buffer) => {
      all += data.toString();
      const found = wanted.exec(all);
      if (found) {
        done(found[0]);
      }
    };
    child.stdout?.on('data', look);
    child.stderr?.on('data', look);
    child.on('exit', (status) => failed(new Error(`pgdyno ended with ${status}:\n${all}`)));
  });
}

/** Ends a process, and waits until it is gone. */
export async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const gone = new Promise((done) => child.on('exit', done));
    child.kill(signal);
    await gone;
  }
}

/** Serves a copy of the store `name`. */
export async function serve(name: string, ...options: string[]): Promise<Server & { stop(): Promise<void> }> {
  const folder = mkdtempSync(join(OUT, 'served-'));
  const file = join(folder, 'store.sqlite3');
  copyFileSync(store(name), file);
  const child = start(['serve', '--listen', '127.0.0.1:0', '--store', file, ...options]);
  const url = await printed(child, /http:\/\/127\.0\.0\.1:\d+/);
  return {
    url,
    file,
    stop: async () => {
      await end(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Notes what a reader must never meet on a page of a server. */
export function watched(page: Page): Trouble {
  return troubleOn(page, /^(http:\/\/127\.0\.0\.1:\d+\/|data:|blob:)/);
}

/** Test with a server over the store that `test.use({ served: … })` names. */
export const test = base.extend<{ served: string; server: Server; trouble: Trouble }>({
  served: ['quickstart', { option: true }],
  server: async ({ served }, use) => {
    const { stop, ...server } = await serve(served);
    await use(server);
    await stop();
  },
  trouble: async ({ page }, use) => {
    const found = watched(page);
    await use(found);
    base.expect(found).toEqual([]);
  },
});
export const expect = base.expect;
