//! Integration tests of the crate `cli`, one module for each subject.
#![allow(
    unreachable_pub,
    clippy::cast_precision_loss,
    clippy::needless_pass_by_value,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests and their helpers fail by panicking and print figures"
)]

mod audit;
mod bad_input;
mod bad_peers;
mod blocked_statements;
mod cluster_ray;
mod cluster_slurm;
mod cluster_support;
mod command_line;
mod consent;
mod crash;
mod crash_disk;
mod crash_files;
mod crash_resume;
mod crash_states;
mod crash_truths;
mod crash_verdicts;
mod crash_witness;
mod doctor;
mod end_to_end;
mod endings;
mod export;
mod external;
mod field_report_figures;
mod field_reports;
mod figures_support;
mod filesystem_stacks;
mod first_install;
mod first_screens;
mod flush_accounting;
mod generators;
mod generators_apart;
mod generators_join;
mod generators_schedulers;
mod generators_ssh;
mod generators_support;
mod hostile_text;
mod hosts;
mod intruder;
mod long_hour;
mod long_runs;
mod long_support;
mod new_experiment;
mod packaging;
mod pgbench_batches;
mod pgbench_initialize;
mod pgbench_logs;
mod pgbench_options;
mod pgbench_output;
mod pgbench_password;
mod pgbench_run;
mod pgbench_scripts;
mod pgbench_store;
mod pgbench_support;
mod pgbench_surroundings;
mod probes;
mod progress;
mod raid_cache;
mod recipes;
mod serve;
mod serve_attacks;
mod serve_live;
mod serve_support;
mod shared_store;
mod smart;
mod ssh_support;
mod store_merge;
mod store_over_months;
mod support;
mod truth;
