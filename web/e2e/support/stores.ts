// Stores that the tests look at: short real runs, each in a store of its own.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { IS_SMOKE, OUT, pgdyno, WEB } from './program';

const STORES = process.env.PGDYNO_E2E_STORES ?? join(OUT, 'stores');
const MARKUP = '<img src=x onerror=alert(1)>';

const set = (pairs: Record<string, string>) => Object.entries(pairs).flatMap(([k, v]) => ['--set', `${k}=${v}`]);
const short = {
  'load.duration': '1s',
  'load.warm_up': '100ms',
  'workload.scale': '1',
  'telemetry.fsync': '200ms',
  // Few trials where one page of each kind is enough.
  ...(IS_SMOKE ? { 'experiment.repeats': '2', 'factors.clients': '[2]' } : {}),
};

/** Writes an experiment into the folder of this store; returns its path. */
function experiment(name: string, text: string): string {
  const folder = join(OUT, 'experiments');
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${name}.toml`);
  writeFileSync(path, text);
  return path;
}

/** Writes an experiment whose every name is markup; returns its path. */
export function hostile(): string {
  const workload = join(OUT, 'experiments/hostile-workload');
  mkdirSync(workload, { recursive: true });
  writeFileSync(
    join(workload, 'workload.toml'),
    `description = "${MARKUP}"\n[data]\nof = "tpcb-like"\n[[script]]\nfile = "${MARKUP}.sql"\nweight = 1\n`,
  );
  const select = "SELECT abalance, '</script><script>alert(1)</script>' FROM pgbench_accounts WHERE aid = 1;\n";
  writeFileSync(join(workload, `${MARKUP}.sql`), select);
  return experiment(
    'hostile',
    `[experiment]
name = "hostile"
question = "</script><script>document.title='owned'</script>${MARKUP} \\u202Eolleh?"
repeats = 2
[factors]
clients = [1, 2]
[factors."<b>factor</b>&amp;"]
"<script>alert(1)</script>" = { cluster_name = "${MARKUP}" }
"\\"' onmouseover=alert(1) x='" = { cluster_name = "'\\">x" }
"javascript:alert(1)\\u202E\`code\`" = { cluster_name = "</script>" }
[workload]
name = "./hostile-workload"
scale = 1
[load]
duration = "1s"
warm_up = "100ms"
[telemetry]
fsync = "200ms"
[storage."${MARKUP}"]
`,
  );
}

function heat(): string {
  return experiment(
    'heat',
    `[experiment]
question = "How do clients and commit_delay act together?"
repeats = 2
[factors]
clients = [1, 2, 3, 4, 6, 8]
commit_delay = [0, 10, 30, 100, 300, 1000]
[workload]
scale = 1
[load]
duration = "1s"
warm_up = "50ms"
[telemetry]
fsync = "200ms"
[between]
vacuum = false
checkpoint = false
`,
  );
}

type Make = (run: (...args: string[]) => void) => void;

const MAKERS: Record<string, Make> = {
  quickstart: (run) => {
    run('run', 'quickstart', ...set(short));
    run('run', 'quickstart', ...set({ ...short, 'postgres.settings.shared_buffers': '32MB' }));
  },
  sweep: (run) => {
    run('run', 'quickstart', ...set({ ...short, 'factors.clients': '[1,2,4,8,16]' }));
  },
  heat: (run) => run('run', heat()),
  long: (run) => {
    const load = { 'load.duration': '40s', 'factors.clients': '[8]', 'factors.synchronous_commit': '["on"]' };
    // A timed checkpoint begins and ends within the window.
    const checkpoints = { checkpoint_timeout: '30s', checkpoint_completion_target: '0.1' };
    const named = Object.entries(checkpoints).map(([name, value]) => [`postgres.settings.${name}`, value]);
    const settings = { ...Object.fromEntries(named), 'experiment.repeats': '1' };
    run('run', 'quickstart', ...set({ ...short, ...load, ...settings, 'workload.scale': '5' }));
  },
  // One client that waits 20 ms at each commit: a difference that no noise hides.
  why: (run) => {
    const factors = { 'factors.synchronous_commit': '["on"]', 'factors.clients': '[1]', 'factors.commit_delay': '[0, 20000]' };
    const answer = { 'answer.level': '"20000"', 'answer.against': '"0"', 'experiment.repeats': '4' };
    // Long enough for polls of wait events to find the client's backend at work.
    const load = { 'load.duration': '3s', 'postgres.settings.commit_siblings': '0' };
    run('run', 'quickstart', ...set({ ...short, ...factors, ...answer, ...load }));
  },
  capacity: (run) => {
    const load = { 'load.find': 'max_rate', 'load.slo': 'p99 < 100ms, failed < 0.1%', 'load.duration': '2s' };
    const factors = { 'factors.clients': '[16]', 'factors.synchronous_commit': '["on"]', 'experiment.repeats': '2' };
    run('run', 'quickstart', ...set({ ...short, ...load, ...factors, 'workload.name': 'select-only' }));
  },
  failed: (run) => {
    run('run', 'quickstart', ...set({ ...short, 'postgres.settings.max_connections': '4', 'factors.clients': '[1,8]' }));
  },
  crash: (run) => {
    const faults = ['--fault', 'power,emulated-lie,process', '--rounds', '3', '--seed', '4611686018427387905'];
    run('crash', ...faults, '--emulated', '--filesystem', 'ext4');
  },
  crashfail: (run) => {
    const rounds = IS_SMOKE ? ['--rounds', '1', '--load', '1s'] : ['--rounds', '2'];
    run('crash', '--fault', 'power', ...rounds, '--emulated', '--filesystem', 'ext4', '--setting', 'fsync=off');
  },
  probes: (run) => {
    const folder = join(OUT, 'probed');
    mkdirSync(folder, { recursive: true });
    run('fsync', folder, '--duration', '50ms');
    if (!IS_SMOKE) {
      run('disk', folder, '--size', '64MiB', '--duration', '50ms');
    }
  },
  import: (run) => {
    run('audit', join(WEB, '../experiments/figures/filesystems.txt'), join(WEB, '../experiments/figures/zfs-xfs.txt'));
    // Beside which figures of a document stand.
    if (!IS_SMOKE) {
      run('run', 'quickstart', ...set({ ...short, 'factors.clients': '[1]' }));
    }
  },
  hostile: (run) => run('run', hostile()),
};

/** Path of the store `name`; runs what it holds if it was not made before. */
export function store(name: string): string {
  const path = join(STORES, `${name}.sqlite3`);
  if (!existsSync(path)) {
    mkdirSync(STORES, { recursive: true });
    const making = join(STORES, `${name}.making.sqlite3`);
    rmSync(making, { force: true });
    MAKERS[name]((...args) => void pgdyno([...args, '--quiet', '--store', making, ...output(args)]));
    renameSync(making, path);
  }
  return path;
}

/** A run writes a report too: nobody reads this one. */
function output(args: string[]): string[] {
  return args[0] === 'run' ? ['-o', '/dev/null'] : [];
}
