//! Settles a server before a trial, so that all trials begin alike.

use crate::error::{LabError, NOT_STOPPED};
use pgdyno_dataset::workload::Workload;
use pgdyno_exec::tool::run_user_command;
use pgdyno_model::experiment::Between;

use super::cluster_pool::ReadyServer;
use super::prewarm::prewarm;
use super::server::Server;
use pgdyno_provision::sql::execute;
use pgdyno_provision::{BenchError, Context};

/// Settles the server before a trial: tidying, the user's command, CHECKPOINT, TRIM, cold or warm
/// caches, a rest; in this order.
pub(super) fn settle(
    ready: &mut ReadyServer<'_>,
    between: &Between,
    workload: &Workload,
    context: Context<'_>,
) -> Result<(), BenchError> {
    if between.vacuum && !workload.between.is_empty() {
        let mut client = ready.server.connect_to_data()?;
        for sql in &workload.between {
            execute(&mut client, &format!("tidy up before the trial (`{sql}`)"), sql)?;
        }
    }
    if !between.command.is_empty() {
        run_command(&between.command, context)?;
    }
    if between.checkpoint {
        execute(&mut ready.server.connect_aside()?, "checkpoint before the trial", "CHECKPOINT")?;
    }
    ready.trim()?;
    if between.drop_caches {
        drop_caches(ready.server, context)?;
    }
    if between.prewarm {
        prewarm(ready.server, workload)?;
    }
    context.sleep(between.pause.0)
}

/// Runs the user's command; a signal to pgdyno ends it too.
fn run_command(words: &[String], context: Context<'_>) -> Result<(), BenchError> {
    let wrong =
        |found: String| BenchError::from(LabError::Command { command: words.join(" "), found });
    match run_user_command(words, context.stop).map_err(|e| wrong(e.to_string()))? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(wrong(format!("it ended with {status}"))),
        None => Err(BenchError::Interrupted),
    }
}

/// Stops the server, has the kernel drop its caches, and starts the server again.
fn drop_caches(server: &mut Server, context: Context<'_>) -> Result<(), BenchError> {
    let Server::Managed(cluster) = server else {
        return Err(LabError::DropCaches(NOT_STOPPED).into());
    };
    cluster.stop(pgdyno_postgres::StopMode::Fast);
    pgdyno_exec::caches::drop_caches()
        .map_err(|_| LabError::DropCaches("the kernel refuses; a container may not"))?;
    Ok(cluster.start(context.stop)?)
}
