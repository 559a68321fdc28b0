// The reader's choices, kept in step with the URL's hash.
import { hash, NOTHING, parse, type Choices } from './url';

class State {
  current: Choices = $state.raw(NOTHING);

  /** Reads the URL, and follows it. */
  follow(): void {
    this.read();
    addEventListener('popstate', () => this.read());
  }

  /** Reads the URL. */
  read(): void {
    this.current = parse(location.hash);
  }

  /** Changes choices: a step that `back` undoes. */
  set(change: Partial<Choices>): void {
    this.#write(change, 'pushState');
  }

  /** Changes choices without a step of their own: while a brush is drawn or a filter is typed. */
  adjust(change: Partial<Choices>): void {
    this.#write(change, 'replaceState');
  }

  /** Link to the same page with other choices. */
  link(change: Partial<Choices>): string {
    return hash({ ...this.current, ...change });
  }

  #write(change: Partial<Choices>, how: 'pushState' | 'replaceState'): void {
    this.current = { ...this.current, ...change };
    history[how](null, '', hash(this.current));
  }
}

export const choices = new State();
