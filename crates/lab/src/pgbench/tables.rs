//! What is looked at and tidied in the database before a run.

use std::io::Write;

use postgres::{Client, SimpleQueryMessage};

use super::connection::Notices;
use super::initialize::server_words;
use super::options::Run;
use super::refused::Refused;

/// What pgbench's tables tell of themselves.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) scale: u32,
    /// The method and number of the partitions of `pgbench_accounts`.
    pub(super) partitions: Option<(String, u32)>,
}

/// Looks at the tables where a built-in script needs them.
///
/// # Errors
/// They are missing.
pub(super) fn look(
    client: &mut Client,
    database: &str,
    run: &Run,
    err: &mut dyn Write,
) -> Result<Tables, Refused> {
    let asked = run.scale.unwrap_or(1);
    if !run.uses_builtin() {
        return Ok(Tables { scale: asked, partitions: None });
    }
    let missing = |what: String| {
        Refused::new(what).hint(format!(
            "Perhaps you need to do initialization (\"pgbench -i\") in database \"{database}\"."
        ))
    };
    const COUNT: &str = "select count(*) from pgbench_branches";
    let count = one(client, COUNT)
        .map_err(|e| missing(format!("could not count number of branches: {}", server_words(&e, COUNT))))?;
    let scale = count.first().and_then(|n| n.parse::<u32>().ok()).unwrap_or(0);
    if scale == 0 {
        return Err(missing(format!("invalid count(*) from pgbench_branches: \"{}\"", count.join(""))));
    }
    if run.scale.is_some() {
        let _ = writeln!(
            err,
            "pgbench: warning: scale option ignored, using count from pgbench_branches table ({scale})"
        );
    }
    // The table that an unqualified name means; servers before 10 have no partitions of this kind.
    let partitioned = one(
        client,
        "select p.partstrat, (select count(*) from pg_catalog.pg_inherits i where i.inhparent = p.partrelid) \
         from pg_catalog.pg_partitioned_table p where p.partrelid = 'pgbench_accounts'::regclass",
    )
    .unwrap_or_default();
    let partitions = match partitioned.as_slice() {
        [method, number] => {
            let method = match method.as_str() {
                "r" => "range",
                "h" => "hash",
                _ => "list",
            };
            number.parse().ok().map(|n| (method.to_owned(), n))
        }
        _ => None,
    };
    Ok(Tables { scale, partitions })
}

/// The first row of `query`; empty if there is none.
fn one(client: &mut Client, query: &str) -> Result<Vec<String>, postgres::Error> {
    let row = client.simple_query(query)?.into_iter().find_map(|m| match m {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    Ok(row.map_or_else(Vec::new, |row| {
        (0..row.len()).map(|n| row.get(n).unwrap_or_default().to_owned()).collect()
    }))
}

/// The vacuum before a run.
pub(super) fn vacuum(client: &mut Client, notices: &Notices, run: &Run, err: &mut dyn Write) {
    if !run.vacuum {
        return;
    }
    let _ = write!(err, "starting vacuum...");
    for statement in ["vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history"] {
        attempt(client, notices, statement, err);
    }
    let _ = writeln!(err, "end.");
    if run.vacuum_all {
        let _ = write!(err, "starting vacuum pgbench_accounts...");
        attempt(client, notices, "vacuum analyze pgbench_accounts", err);
        let _ = writeln!(err, "end.");
    }
}

/// An error is told and the run goes on.
fn attempt(client: &mut Client, notices: &Notices, statement: &str, err: &mut dyn Write) {
    let attempted = client.batch_execute(statement);
    notices.relay(err);
    if let Err(e) = attempted {
        let _ = writeln!(err, "pgbench: error: {}", server_words(&e, statement));
        let _ = writeln!(err, "pgbench: detail: (ignoring this error and continuing anyway)");
    }
}
