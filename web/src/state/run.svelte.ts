// A run's page: what is drawn, compared and opened, out of the run and the reader's choices.
import { getContext, setContext } from 'svelte';
import type { Source } from '../data/source';
import type { RunPage, RunView, TreatmentView, TrialView } from '../data/types';
import { look, UNSELECTED, type Look } from '../palette';
import { choices } from './choices.svelte';
import { defaultBaseline, defaultSlots, ratiosTo, toggled, validSlots } from './selection';

const KEY = Symbol('run');

export class RunState {
  readonly view: RunView;
  readonly slots: (number | null)[] = $derived.by(() =>
    choices.current.slots
      ? validSlots(choices.current.slots, this.view.treatments.length)
      : defaultSlots(this.view),
  );
  readonly drawn: TreatmentView[] = $derived.by(() =>
    this.slots.filter((t) => t !== null).map((t) => this.view.treatments[t]),
  );
  readonly baseline: number | null = $derived.by(() => {
    const chosen = choices.current.baseline;
    return chosen !== null && chosen < this.view.treatments.length
      ? chosen
      : defaultBaseline(this.view);
  });
  readonly ratios = $derived.by(() => ratiosTo(this.page.pairs, this.baseline));
  /** Index of the opened trial; null where no trial is completed. */
  readonly trial: number | null = $derived.by(() => {
    const chosen = choices.current.trial;
    return chosen !== null && chosen < this.view.trials.length
      ? chosen
      : this.firstTrial(this.baseline ?? 0);
  });
  readonly under: number | null = $derived.by(() => {
    const chosen = choices.current.under;
    return chosen !== null && chosen < this.view.trials.length && chosen !== this.trial
      ? chosen
      : null;
  });

  constructor(
    readonly page: RunPage,
    readonly source: Source,
  ) {
    this.view = page.view;
  }

  lookOf(treatment: number): Look {
    const slot = this.slots.indexOf(treatment);
    return slot >= 0 ? look(slot) : UNSELECTED;
  }

  isDrawn(treatment: number): boolean {
    return this.slots.includes(treatment);
  }

  label(treatment: number): string {
    return this.view.treatments[treatment]?.label ?? `treatment ${treatment + 1}`;
  }

  /** Draws a treatment or draws it no more; false if eight are drawn already. */
  toggle(treatment: number): boolean {
    const slots = toggled(this.slots, treatment);
    if (slots) {
      choices.set({ slots });
    }
    return slots !== null;
  }

  /** Index of a treatment's first completed trial, else of any completed trial. */
  firstTrial(treatment: number): number | null {
    const completed = (t: TrialView) => t.state === 'completed';
    const { trials } = this.view;
    const own = trials.findIndex((t) => completed(t) && t.treatment === treatment);
    const any = own >= 0 ? own : trials.findIndex(completed);
    return any >= 0 ? any : null;
  }

  /** Opens a trial on the time axis. */
  open(trial: number | null): void {
    if (trial !== null) {
      choices.set({ trial, brush: null, at: 'time' });
    }
  }

  openTreatment(treatment: number): void {
    this.open(this.firstTrial(treatment));
  }

  openOrdinal(ordinal: number): void {
    const found = this.view.trials.findIndex((t) => t.ordinal === ordinal && t.state === 'completed');
    this.open(found >= 0 ? found : null);
  }
}

export function provideRun(page: RunPage, source: Source): RunState {
  return setContext(KEY, new RunState(page, source));
}

export function useRun(): RunState {
  return getContext(KEY);
}
