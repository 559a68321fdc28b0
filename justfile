# The daily commands. `just` alone lists them.
_default:
    @just --list

# What must pass before landing: formatting, clippy, the first tier of tests, the front end (installs what is missing)
check:
    .ci/run

# Everything: both tiers of tests with PostgreSQL 15 to 18, all pages, packages, docs (root; hours; CONTRIBUTING.md)
check-all folder="target/check-all":
    .ci/all {{folder}}

# Formatting, as CI wants it
fmt:
    cargo fmt --all --check

# Clippy with warnings denied: everything, then the default build without its optional features
lint:
    cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
    cargo clippy --locked -- -D warnings

# The API documentation, with warnings denied
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --all-features --no-deps --document-private-items --locked

# The front end of reports: checks, unit tests, and the page that pgdyno embeds (needs Node.js 20)
web:
    cd web && npm install --no-save --no-audit --no-fund && npm run lint && npm run check && npm test && npm run build

# Reports in a browser: pages of real runs by the debug build, then tests in Chromium (root)
web-e2e folder="/var/tmp/pgdyno-e2e":
    cargo build --all-features
    cd web && PGDYNO_E2E_OUT={{folder}} npm run e2e

# Pictures of docs/images, from the pages that `just web-e2e` made
screenshots folder="/var/tmp/pgdyno-e2e":
    cd web && node tools/screenshots.mjs docs {{folder}}/pages ../docs/images

# A run as a small store beside the field reports' pages: docs/field-reports/runs/NAME.pgdyno
field-report-run run name:
    pgdyno archive --anonymous {{run}} docs/field-reports/runs/{{name}}.pgdyno
    pgdyno store thin --yes --store docs/field-reports/runs/{{name}}.pgdyno {{run}}

# A picture of a run's chart over its factor, for a field report's page
field-report-picture run name folder="/var/tmp/pgdyno-field-reports":
    mkdir -p {{folder}}
    pgdyno report {{run}} --output {{folder}}/{{name}}.html
    cd web && node tools/screenshots.mjs field-reports {{folder}} ../docs/field-reports/images

# Time until a report is drawn beside an empty page, in turn (docs/benchmarks.md keeps the last result)
bench-report folder="/var/tmp/pgdyno-e2e":
    PGDYNO_KEEP_PAGES={{folder}}/large cargo test -p pgdyno-report --test it -- --include-ignored page_sizes
    cd web && node bench/first-view.mjs {{folder}}/pages/quickstart.html {{folder}}/large/*.html

# The first tier of tests, with real PostgreSQL
test:
    cargo test --workspace --all-features --tests

# Does any test fail without a fault? The first tier ten times, half of them on a busy machine, and .ci/run three times
steady tests="10" checks="3":
    .ci/steady {{tests}} {{checks}}

# PostgreSQL 15 to 18 with their pgbench, for the differential tests; prints what to set
fetch-postgresql folder="/var/tmp/pgdyno-test-postgresql":
    .ci/postgresql {{folder}}
    @echo export PGDYNO_TEST_POSTGRESQL={{folder}}

# Random scripts of meta commands beside pgbench 15 to 18 (docs/pgbench.md keeps the last result)
random-scripts count="1000":
    PGDYNO_TEST_SCRIPTS={{count}} cargo test -p pgdyno-cli --all-features --test it -- pgbench_scripts::scripts_at_random

# Judgements beside known truths, through the binary; writes the table of docs/statistics.md
truth count="1000":
    PGDYNO_TRUTH={{count}} PGDYNO_TRUTH_WRITE=1 cargo test --release -p pgdyno-cli --all-features --test it -- --ignored truth::judgements --nocapture

# Honest filesystems without a false alarm, in long series; writes a table of docs/crash-tests.md (root)
crash-honest rounds="100":
    PGDYNO_ROUNDS={{rounds}} PGDYNO_TRUTH_WRITE=1 cargo test -p pgdyno-cli --all-features --test it -- --ignored crash_truths::honest --nocapture

# Planted failures that must be seen, in series; writes a table of docs/crash-tests.md (root)
crash-truths:
    PGDYNO_TRUTH_WRITE=1 cargo test -p pgdyno-cli --all-features --test it -- --ignored crash_truths::what_is_planted --nocapture

# A disk that skips 1 flush in k beside what crash tests say of it; writes a table of docs/crash-tests.md (root)
crash-power rounds="40":
    PGDYNO_ROUNDS={{rounds}} PGDYNO_TRUTH_WRITE=1 cargo test -p pgdyno-cli --all-features --test it -- --ignored crash_truths::a_disk_that_skips --nocapture

# Honest filesystems at every flush of a longer stretch than CI's (root; docs/crash-tests.md keeps the last result)
crash-states load="250ms":
    PGDYNO_STATES_LOAD={{load}} cargo test --workspace --all-features --test it -- --ignored crash_states::honest_filesystems_keep --nocapture

# States of a disk that are judged a minute, and what takes the time (root; docs/crash-tests.md keeps the last result)
states-a-minute *args:
    cargo run --release --all-features -- crash --exhaustive=flushes --filesystem ext4 --load 1s --budget 3m --jobs 2 {{args}}

# Treatments judged together whose truth is known: false differences, power (docs/statistics.md keeps the last result)
pairs:
    PGDYNO_SIMULATIONS=2000 cargo test -p pgdyno-stats --lib -- --ignored simulations::pairs simulations::uneven --nocapture

# Error rates, coverage and power of verdicts beside known truths (docs/statistics.md keeps the last result)
simulations:
    PGDYNO_SIMULATIONS=2000 cargo test -p pgdyno-stats --lib -- simulations host_noise variance --nocapture

# What is said within a trial beside known truths (docs/statistics.md keeps the last result)
seconds:
    cargo test --release -p pgdyno-stats --lib -- --ignored truth --nocapture

# A run of an hour detached, watched, thinned and archived; writes the tables of docs/long-runs.md
long minutes="60":
    PGDYNO_LONG={{minutes}} PGDYNO_TRUTH_WRITE=1 cargo test --workspace --all-features --test it -- --ignored long_hour:: --nocapture

# The JSON Schemas of experiment files and of the API, and the front end's types, from Rust's types
schema:
    PGDYNO_SCHEMA_WRITE=1 cargo test --workspace --all-features --lib -- the_committed_schema
    cd web && npm install --no-save --no-audit --no-fund && npm run types

# Cost of a coordinator with a thousand simulated workers (docs/generators.md keeps the last result)
thousand-generators:
    cargo test --release -p pgdyno-generators --test it thousand -- --ignored --nocapture

# Generators on real Slurm and Ray: three nodes of each here, then taken down (root; docs/generators.md keeps the last result)
cluster folder="/var/tmp/pgdyno-cluster":
    .ci/cluster {{folder}}

# All artefacts of a release, made and tried, in target/release-artefacts (root; docs/releases.md)
release:
    packaging/release

# Licences, bans and sources of dependencies (needs cargo-deny; advisories need its database)
deny:
    cargo deny check licenses bans sources

# The main job
quickstart:
    cargo run --release -- run quickstart

# pgdyno beside the installed pgbench, in turn (docs/benchmarks.md keeps the last result)
bench *args:
    cargo bench -p pgdyno-pgbench --bench vs_pgbench -- {{args}}

# A log of `SELECT 1` read and replayed: rate, CPU time a statement, lag (docs/benchmarks.md keeps the last result)
bench-replay *args:
    cargo bench -p pgdyno-replay --bench rate -- {{args}}

# Loads captured, and replayed beside the original (docs/capture.md keeps the last result), on the server that PGHOST and the like name: it loads pg_stat_statements; databases pgdyno_original and pgdyno_twin are made anew
capture-twins seconds="30":
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build -q -p pgdyno-cli --features full
    pgdyno=${CARGO_TARGET_DIR:-target}/debug/pgdyno
    twins() {
        for database in pgdyno_original pgdyno_twin; do
            psql -qX -d postgres -c "DROP DATABASE IF EXISTS $database" -c "CREATE DATABASE $database"
            psql -qX -d $database -c 'CREATE EXTENSION pg_stat_statements'
        done
        folder=$(mktemp -d)
        $pgdyno -q load "$1" -s "$2" -d pgdyno_original
        (cd "workloads/$3" && pgbench -n -c 4 -s "$2" -T $(({{seconds}} + 10)) "${@:4}" pgdyno_original) &
        sleep 5
        $pgdyno -q capture --dsn dbname=pgdyno_original --watch {{seconds}}s "$folder"
        wait
        $pgdyno -q load "$folder" -d pgdyno_twin
        $pgdyno -q fidelity "$folder" --dsn dbname=pgdyno_twin --duration {{seconds}}s
    }
    twins tpcb-like 10 tpcb-like -f tpcb-like.sql
    twins tprocc 2 tprocc-statements -f new_order.sql@45 -f payment.sql@43 -f order_status.sql@4 -f delivery.sql@4 -f stock_level.sql@4

# The bulk load beside `pgbench -i` and COPY of a text file, in turn (docs/benchmarks.md keeps the last result)
bench-load *args:
    cargo bench -p pgdyno-lab --bench vs_load -- {{args}}

# TPROC-C beside go-tpc: load and runs, in turn (docs/benchmarks.md keeps the last result)
bench-tprocc *args:
    cargo bench -p pgdyno-lab --bench vs_go_tpc -- {{args}}

# The fsync probe beside PostgreSQL's pg_test_fsync, in turn (docs/probes.md keeps the last result)
fsync-vs-pg_test_fsync *args:
    cargo bench -p pgdyno-storage --bench vs_pg_test_fsync -- {{args}}

# PostgreSQL on the emulated disk beside a plain loop device, in turn (docs/emulated-disk.md keeps the last result)
emulated-disk *args:
    cargo bench -p pgdyno-storage --bench emulated_disk -- {{args}}

# Precision and recall of audit's rules on the texts of FOLDER; SETS: working, aside, or both parted by a comma
audit-corpus FOLDER SETS="working":
    PGDYNO_AUDIT_CORPUS={{FOLDER}} PGDYNO_AUDIT_SETS={{SETS}} cargo test -p pgdyno-audit --test it -- --ignored --nocapture corpus::

# The table of findings in docs/audit.md, from the field reports
audit-docs:
    AUDIT_DOCS=write cargo test -p pgdyno-results --test it -- audit::

# A parser against arbitrary bytes, for a minute: `frames` of the protocol, or `logs` (needs cargo-fuzz and a nightly toolchain)
fuzz seconds="60" target="frames":
    cd fuzz && cargo +nightly fuzz run {{target}} -- -max_total_time={{seconds}}

# What a ledger costs the load that keeps it (docs/crash-tests.md keeps the last result)
ledger-cost *args:
    cargo bench -p pgdyno-crash --bench ledger_cost -- {{args}}

# What a live file and watchers through serve cost the load, in turn (docs/benchmarks.md keeps the last result)
bench-live *args:
    cargo bench -p pgdyno-web --bench live_cost -- {{args}}

# The list of a store of 10,000 runs beside one plain query of them, in turn
bench-serve *args:
    cargo bench -p pgdyno-web --bench serve_list -- {{args}}
