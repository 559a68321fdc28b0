//! `pgdyno load`.

use std::sync::atomic::AtomicBool;

use pgdyno_lab::load::{ConnectOptions, Existing, Load, Strategy, load as lab_load};
use pgdyno_lab::{LabError, Loading};

use crate::Done;
use crate::args;
use crate::commands::with_progress;
use crate::output::{Failure, print, tell};

pub(crate) fn load(options: &args::Load, stop: &AtomicBool) -> Result<Done, Failure> {
    let load = Load {
        workload: options.workload.clone(),
        scale: options.scale,
        seed: options.seed,
        loading: Loading {
            filler_compress_percentage: options.filler_compress_percentage,
            partitions: options.partitions,
            jobs: options.jobs,
            ..Loading::default()
        },
        strategy: options.strategy.map(|strategy| match strategy {
            args::Strategy::Freeze => Strategy::Freeze,
            args::Strategy::Chunks => Strategy::Chunks,
        }),
        chunk: None,
        existing: if options.replace { Existing::ReplaceOurs } else { Existing::Keep },
        connect: ConnectOptions {
            dsn_or_dbname: options.dbname.clone(),
            host: options.host.clone(),
            port: options.port.clone(),
            user: options.username.clone(),
            password: None,
            fallback_application_name: Some("pgdyno".into()),
        },
    };
    let loaded = match with_progress(|progress| lab_load(&load, progress, stop)) {
        Err(LabError::Interrupted) => {
            tell("interrupted; the same command goes on from what is loaded");
            return Ok(Done::Interrupted);
        }
        loaded => loaded?,
    };
    let seconds = loaded.took.as_secs_f64().max(0.001);
    #[allow(clippy::cast_precision_loss)]
    let (rows_per_s, megabytes_per_s) =
        (loaded.rows as f64 / seconds, loaded.bytes as f64 / 1e6 / seconds);
    print(&format!(
        "{}: {} rows in {seconds:.2} s, keys and VACUUM included ({rows_per_s:.0} rows/s, {megabytes_per_s:.1} MB/s on the wire)",
        loaded.what, loaded.rows
    ));
    if let Some((what, share)) = loaded.limit {
        let what = match what.as_str() {
            "running" => "computing: its CPU was the limit".to_owned(),
            "Client:ClientRead" => {
                "waiting for rows: pgdyno or the connection was the limit".to_owned()
            }
            other => format!("waiting for {other}"),
        };
        print(&format!(
            "the server was seen most often {what} ({:.0}% of the looks)",
            share * 100.0
        ));
    }
    Ok(Done::Whole)
}
