import { svelte } from '@sveltejs/vite-plugin-svelte';
import { viteSingleFile } from 'vite-plugin-singlefile';
import { defineConfig } from 'vitest/config';
import { policy } from './vite/policy';

export default defineConfig({
  plugins: [svelte(), viteSingleFile({ removeViteModuleLoader: true }), policy()],
  build: { target: 'es2022', modulePreload: false, reportCompressedSize: false },
  test: { include: ['src/**/*.test.ts', 'vite/**/*.test.ts', 'tools/**/*.test.ts'] },
});
