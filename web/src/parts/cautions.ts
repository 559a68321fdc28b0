import type { Caution } from '../data/types';

/** Cautions that stand open, at most. */
const OPEN = 5;

/** Splits cautions: those that change the conclusion stand open, up to five; the rest is folded. */
export function inTiers(cautions: Caution[]): { open: Caution[]; folded: Caution[] } {
  const conclusion = cautions.filter((caution) => caution.tier === 'conclusion');
  const context = cautions.filter((caution) => caution.tier !== 'conclusion');
  return { open: conclusion.slice(0, OPEN), folded: [...conclusion.slice(OPEN), ...context] };
}
