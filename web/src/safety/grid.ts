// Rounds of crash tests as a grid: a row for each fault, a column for each aim.
import type { Aim, Check, CrashView, FaultView, Round } from '../data/types';

/** Heading of each aim, in the order of columns. */
const AIMS: Record<Aim, string> = {
  load: 'load',
  checkpoint: 'checkpoint',
  'after-checkpoint': 'after a checkpoint',
  'segment-switch': 'WAL segment switch',
  vacuum: 'VACUUM',
  'create-index': 'CREATE INDEX',
  recovery: 'recovery',
  'wal-flush': 'WAL write to flush',
  request: 'disk request',
  hand: 'by hand',
};

export interface Grid {
  columns: { aim: string; heading: string }[];
  /** Rounds of each fault, column by column. */
  rows: { fault: FaultView; cells: Round[][] }[];
}

/** Returns the heading of an aim. */
export function aimHeading(aim: string): string {
  return Object.hasOwn(AIMS, aim) ? AIMS[aim as Aim] : String(aim);
}

/** Arranges the rounds of a session. Columns without a round are left out. */
export function grid(crash: CrashView): Grid {
  const faults = crash.faults ?? [];
  const used = new Set<string>(faults.flatMap((fault) => (fault.each ?? []).map((round) => round.aim)));
  const known = Object.keys(AIMS).filter((aim) => used.has(aim));
  const unknown = [...used].filter((aim) => !known.includes(aim));
  const columns = [...known, ...unknown].map((aim) => ({ aim, heading: aimHeading(aim) }));
  const rows = faults.map((fault) => ({
    fault,
    cells: columns.map(({ aim }) => (fault.each ?? []).filter((round) => round.aim === aim)),
  }));
  return { columns, rows };
}

/** Verdict that is shown of a round: one that failed as its fault is meant to is *as planted*. */
export function shownVerdict(round: Round, planted: boolean): string {
  const verdict = String(round.verdict);
  return planted && verdict.startsWith('FAIL') ? verdict.replace('FAIL', 'as planted') : verdict;
}

/** Meaning of a verdict, in a sentence. */
export function meaning(verdict: string): string {
  const text = String(verdict);
  if (text.startsWith('FAIL')) {
    return 'A promise was broken.';
  }
  if (text.startsWith('as planted')) {
    return 'The failure that was meant to come came.';
  }
  const meanings: Record<string, string> = {
    pass: 'Every check that could run found nothing wrong. It is no proof.',
    'bounded-loss': 'Acknowledged transactions are missing, as the settings allow.',
    partial: 'Nothing was found wrong, and not every state at a flush was judged.',
    unknown: 'Something could not be checked, or nothing was under test.',
    invalid: 'A control was not seen or not run, so that silence means nothing.',
  };
  return meanings[text] ?? '';
}

/** Address of a round on a page: index of its session, fault, number. */
export function roundKey(session: number, fault: string, round: Round): string {
  return `${session}.${fault}.${round.number}`;
}

/** Finds the round that `key` names. */
export function findRound(
  crashes: CrashView[],
  key: string | null,
): { session: number; fault: FaultView; round: Round } | null {
  for (const [session, crash] of crashes.entries()) {
    for (const fault of crash.faults ?? []) {
      for (const round of fault.each ?? []) {
        if (roundKey(session, fault.fault, round) === key) {
          return { session, fault, round };
        }
      }
    }
  }
  return null;
}

/** Address of the first round that broke a promise; none if no round did. */
export function firstFailure(crashes: CrashView[]): string | null {
  for (const [session, crash] of crashes.entries()) {
    for (const fault of (crash.faults ?? []).filter((f) => !f.planted)) {
      const failed = (fault.each ?? []).find((round) => String(round.verdict).startsWith('FAIL'));
      if (failed) {
        return roundKey(session, fault.fault, failed);
      }
    }
  }
  return null;
}

const WEIGHT = ['failed', 'could-not-run', 'allowed', 'not-applicable', 'passed'];

/** Checks, those first that a reader must see. */
export function byWeight(checks: Check[]): Check[] {
  return [...checks].sort((a, b) => WEIGHT.indexOf(a.outcome) - WEIGHT.indexOf(b.outcome));
}

/** Outcome of a check, as a sign and words. */
export function outcomeWords(outcome: string): { sign: string; words: string } {
  const all: Record<string, [string, string]> = {
    passed: ['✓', 'passed'],
    allowed: ['≤', 'allowed loss'],
    failed: ['✕', 'failed'],
    'could-not-run': ['?', 'could not run'],
    'not-applicable': ['–', 'not applicable'],
  };
  const [sign, words] = all[outcome] ?? ['?', String(outcome)];
  return { sign, words };
}
