// What a reader has chosen on a page, as text in the URL's hash: a link to a page leads to the same
// view, and back and forward work.

/** Choices of a reader. */
export interface Choices {
  /** Id of the section last jumped to. */
  at: string | null;
  /** Drawn treatments by slot, which sets their look; null: a slot that is free. Null: the default. */
  slots: (number | null)[] | null;
  /** Treatment that the others are compared to; null: the default. */
  baseline: number | null;
  /** Index of the opened trial; null: the default. */
  trial: number | null;
  /** Index of the trial laid under it. */
  under: number | null;
  /** Brushed interval (seconds since the window opened). */
  brush: [number, number] | null;
  /** Wait event or group of telemetry that the time axis accents. */
  focus: string | null;
  /** Words that a treatment's label must hold to be listed. */
  filter: string;
  /** Opened round of a crash test: index of its session, fault, number. `none`: none is open. */
  round: string | null;
}

export const NOTHING: Choices = {
  at: null,
  slots: null,
  baseline: null,
  trial: null,
  under: null,
  brush: null,
  focus: null,
  filter: '',
  round: null,
};

function index(text: string | null): number | null {
  return text !== null && /^\d{1,6}$/.test(text) ? Number(text) : null;
}

/** Reads choices from a hash. What is not understood is left at its default. */
export function parse(hash: string): Choices {
  const from = new URLSearchParams(hash.replace(/^#/, ''));
  const brush = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(from.get('brush') ?? '');
  const slots = from.get('show');
  const at = from.get('at');
  const round = from.get('round');
  return {
    at: at !== null && /^[a-z-]+$/.test(at) ? at : null,
    slots: slots === null ? null : slots.split('.').slice(0, 8).map(index),
    baseline: index(from.get('base')),
    trial: index(from.get('trial')),
    under: index(from.get('under')),
    brush: brush && Number(brush[1]) < Number(brush[2]) ? [Number(brush[1]), Number(brush[2])] : null,
    focus: from.get('focus'),
    filter: from.get('filter') ?? '',
    round: round !== null && /^(none|\d{1,4}\.[a-z-]+\.\d{1,9})$/.test(round) ? round : null,
  };
}

/** Writes choices as a hash, without those that are at their default. */
export function hash(choices: Choices): string {
  const to = new URLSearchParams();
  const put = (name: string, value: string | number | null) => {
    if (value !== null && value !== '') {
      to.set(name, String(value));
    }
  };
  put('at', choices.at);
  put('show', choices.slots && choices.slots.map((slot) => slot ?? '').join('.'));
  put('base', choices.baseline);
  put('trial', choices.trial);
  put('under', choices.under);
  put('brush', choices.brush && choices.brush.map((t) => Number(t.toFixed(3))).join('-'));
  put('focus', choices.focus);
  put('filter', choices.filter);
  put('round', choices.round);
  return `#${to.toString()}`;
}
