/** How a verdict is drawn: its sign, and the weight of its outline. */
export interface BadgeLook {
  sign: string;
  weight: 'plain' | 'heavy' | 'open' | 'quiet';
}

/** Returns the look of a headline's badge or of a crash test's verdict. */
export function badgeLook(verdict: string): BadgeLook {
  const text = String(verdict).toLowerCase();
  if (text.startsWith('fail') || text === 'unsafe' || text === 'exceeded') {
    return { sign: '✕', weight: 'heavy' };
  }
  if (text === 'pass' || text === 'answered' || text === 'passed') {
    return { sign: '✓', weight: 'plain' };
  }
  if (text.startsWith('as planted') || text === 'recorded') {
    return { sign: '●', weight: 'quiet' };
  }
  if (text === 'bounded-loss') {
    return { sign: '≤', weight: 'plain' };
  }
  return { sign: '?', weight: 'open' };
}
