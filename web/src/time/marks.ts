// What happened during a trial: checkpoints, autovacuum, changes of tps.
import type { TrialView } from '../data/types';
import { rate, seconds } from '../format';

export type MarkKind = 'checkpoint' | 'autovacuum' | 'change' | 'fault';

export interface Mark {
  kind: MarkKind;
  from: number;
  /** End of a span; equal to `from` for a moment. */
  to: number;
  text: string;
}

/** Marks within the window of `end` seconds, in order of time. */
export function marksOf(trial: TrialView, end: number): Mark[] {
  const out: Mark[] = [];
  let begun: { t: number; reason: string } | null = null;
  const close = (t: number, what: string) => {
    const from = begun?.t ?? 0;
    const why = begun?.reason ? ` (${begun.reason})` : '';
    out.push({ kind: 'checkpoint', from: Math.max(from, 0), to: Math.min(t, end), text: `checkpoint${why}${what}` });
    begun = null;
  };
  for (const event of trial.events ?? []) {
    const t = event.t_s;
    if (t === null) {
      continue;
    }
    if (event.kind === 'checkpoint starting') {
      begun = { t, reason: event.of };
    } else if (event.kind === 'checkpoint complete') {
      close(t, `, complete at ${seconds(t)} s`);
    } else if (event.kind.startsWith('automatic')) {
      const took = event.numbers?.elapsed_s ?? 0;
      out.push({ kind: 'autovacuum', from: Math.max(t - took, 0), to: t, text: `${event.kind} of ${event.of}` });
    } else if (event.kind.includes('fault')) {
      out.push({ kind: 'fault', from: t, to: t, text: `${event.kind} ${event.of}` });
    }
  }
  if (begun) {
    close(end, ', not complete at the end');
  }
  for (const change of trial.steadiness?.changes ?? []) {
    const causes = change.with.length ? `: ${change.with.join('; ')}` : '';
    const text = `tps changes from ${rate(change.before)} to ${rate(change.after)}${causes}`;
    out.push({ kind: 'change', from: change.t_s, to: change.t_s, text });
  }
  return out.filter((m) => m.to >= 0 && m.from <= end).sort((a, b) => a.from - b.from);
}
