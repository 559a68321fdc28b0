//! Conditions of a workload that hold whenever no transaction is under way.

use pgdyno_dataset::workload::Workload;
use pgdyno_model::progress::Activity;
use pgdyno_provision::sql::query_number;
use pgdyno_provision::{BenchError, Context};

use super::server::Server;

/// Checks the conditions of `workload` on `server`, to which no client is connected any more.
/// Returns the first one that is broken, in words.
///
/// # Errors
/// A condition cannot be asked for.
pub(super) fn broken_condition(
    server: &Server,
    workload: &Workload,
    context: Context<'_>,
) -> Result<Option<String>, BenchError> {
    if workload.consistency.is_empty() {
        return Ok(None);
    }
    context.begin(Activity::CheckingConsistency { workload: workload.name.clone() });
    let mut client = server.connect_to_data()?;
    for condition in &workload.consistency {
        context.check_stop()?;
        let words = &condition.condition;
        let doing = format!("check the workload's condition `{words}`");
        let broken = query_number(&mut client, &doing, &condition.broken)?;
        if broken > 0 {
            let rows = if broken == 1 { "1 row breaks" } else { &format!("{broken} rows break") };
            return Ok(Some(format!("{rows} the workload's condition `{words}`")));
        }
    }
    Ok(None)
}
