import { makePages } from './pages';

/** Makes the pages before the first test. */
export default function setup(): void {
  makePages();
}
