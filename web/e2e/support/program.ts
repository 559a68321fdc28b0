// The program under test, and the folder of what its tests make.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const WEB = resolve(import.meta.dirname, '../..');
/** A server's account must be able to enter it. */
export const OUT = resolve(process.env.PGDYNO_E2E_OUT ?? join(WEB, 'e2e/out'));
/** Whether one page of each kind is enough, in place of all. */
export const IS_SMOKE = process.env.PGDYNO_E2E_PAGES === 'smoke';
export const PGDYNO = resolve(process.env.PGDYNO ?? join(WEB, '../target/debug/pgdyno'));

/** Statuses with which a run leaves results: done, failed trials, gates, a failed crash test, undecided. */
const RESULTS = [0, 2, 3, 4, 5];

export function environment(): NodeJS.ProcessEnv {
  const folder = (name: string) => {
    const path = join(OUT, 'xdg', name);
    mkdirSync(path, { recursive: true });
    return path;
  };
  return {
    ...process.env,
    XDG_DATA_HOME: folder('data'),
    XDG_STATE_HOME: folder('state'),
    XDG_CACHE_HOME: folder('cache'),
    XDG_CONFIG_HOME: folder('config'),
  };
}

/** Runs pgdyno, on a machine that is called `host` if that is given; returns what it printed. Fails if it left no result. */
export function pgdyno(args: string[], host?: string): string {
  if (!existsSync(PGDYNO)) {
    throw new Error(`cannot test the pages: there is no program ${PGDYNO}\nhelp: build it, or name it in PGDYNO`);
  }
  const renamed = ['--uts', 'sh', '-c', 'hostname "$0" && exec "$@"'];
  const [program, words] = host ? ['unshare', [...renamed, host, PGDYNO, ...args]] : [PGDYNO, args];
  const ended = spawnSync(program, words, { env: environment(), encoding: 'utf8', maxBuffer: 1 << 30 });
  if (ended.status === null || !RESULTS.includes(ended.status)) {
    throw new Error(`pgdyno ${args.join(' ')}: status ${ended.status ?? ended.signal}\n${ended.stderr}`);
  }
  return ended.stdout;
}
