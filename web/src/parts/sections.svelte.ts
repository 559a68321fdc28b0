// Sections of a page, in the order in which they stand: the navigation lists those that exist.
import { getContext, setContext } from 'svelte';

export interface SectionEntry {
  id: string;
  title: string;
  element: HTMLElement;
}

const KEY = Symbol('sections');

export class Sections {
  list: SectionEntry[] = $state.raw([]);
  /** Sections that still wait for their turn to be drawn (count). */
  waiting = $state(0);
  private readonly turns: (() => void)[] = [];

  /**
   * Calls `draw` in a frame of its own, after the sections that asked before. The answer and the
   * first section are seen before the rest is drawn.
   */
  take(draw: () => void): void {
    this.turns.push(draw);
    this.waiting += 1;
    if (this.waiting === 1) {
      this.next();
    }
  }

  private next(): void {
    requestAnimationFrame(() =>
      setTimeout(() => {
        this.turns.shift()?.();
        this.waiting -= 1;
        if (this.waiting > 0) {
          this.next();
        }
      }),
    );
  }

  /** Adds a section; the returned function takes it away. */
  add(entry: SectionEntry): () => void {
    const follows = (a: SectionEntry, b: SectionEntry) =>
      a.element.compareDocumentPosition(b.element) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1;
    this.list = [...this.list, entry].sort(follows);
    return () => {
      this.list = this.list.filter((other) => other !== entry);
    };
  }
}

export function provideSections(): Sections {
  return setContext(KEY, new Sections());
}

export function useSections(): Sections {
  return getContext(KEY);
}
