// Writes the types of the API's documents, from the JSON Schema that Rust's types give.
//
//     node tools/types.mjs [--check]
//
// With --check it writes nothing, and fails if the file is not what it would write.
import { readFileSync, writeFileSync } from 'node:fs';
import { compile } from 'json-schema-to-typescript';

const SCHEMA = new URL('../../crates/web/schema/api.json', import.meta.url);
const TYPES = new URL('../src/data/types/api.ts', import.meta.url);

const types = await compile(JSON.parse(readFileSync(SCHEMA, 'utf8')), 'Api', {
  additionalProperties: false,
  bannerComment: '// Documents of the API. `npm run types` writes this file from `crates/web/schema/api.json`.',
  style: { printWidth: 100, singleQuote: true },
});
if (!process.argv.includes('--check')) {
  writeFileSync(TYPES, types);
} else if (readFileSync(TYPES, 'utf8') !== types) {
  console.error(`${TYPES.pathname} is of another schema: write it with \`npm run types\``);
  process.exit(1);
}
