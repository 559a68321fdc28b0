import js from '@eslint/js';
import svelte from 'eslint-plugin-svelte';
import globals from 'globals';
import ts from 'typescript-eslint';
import svelteConfig from './svelte.config.js';

export default ts.config(
  // `src/data/types/api.ts` is generated.
  { ignores: ['dist', 'node_modules', 'e2e/out', 'test-results', 'src/data/types/api.ts'] },
  js.configs.recommended,
  ...ts.configs.recommended,
  ...svelte.configs.recommended,
  { languageOptions: { globals: { ...globals.browser, ...globals.node } } },
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: { parserOptions: { parser: ts.parser, svelteConfig } },
  },
  {
    rules: {
      // Data of a run may hold anything: it stays text.
      'svelte/no-at-html-tags': 'error',
      'no-restricted-properties': [
        'error',
        ...['innerHTML', 'outerHTML', 'insertAdjacentHTML'].map((property) => ({ property })),
        { object: 'document', property: 'write' },
      ],
      // The policy of the page allows style by script only: `style:name={…}`.
      'no-restricted-syntax': ['error', 'SvelteAttribute[key.name="style"]'],
      'svelte/no-navigation-without-resolve': 'off',
      // Sets and maps in these files are built anew, not changed in place.
      'svelte/prefer-svelte-reactivity': 'off',
      'max-lines': ['error', 500],
      'max-lines-per-function': ['error', { max: 70, skipComments: true, skipBlankLines: true }],
      eqeqeq: ['error', 'always', { null: 'ignore' }],
    },
  },
  {
    // A component's script is one function, and a describe block is one too.
    files: ['**/*.svelte', '**/*.test.ts', 'e2e/**'],
    rules: { 'max-lines-per-function': 'off' },
  },
);
