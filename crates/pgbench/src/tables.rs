//! pgbench's tables before a run: their names, the scale, and the vacuum.

use std::collections::BTreeMap;
use std::io::Write;

use pgdyno_connect::control::ControlClient;
use postgres_protocol::escape::{escape_identifier, escape_literal};
use tokio_postgres::SimpleQueryMessage;

use crate::connection::Notices;
use crate::request::Run;
use crate::server_messages::{failed, server_words};
use crate::usage_error::UsageError;

/// Facts that are read from pgbench's tables.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) scale: u32,
    /// The method and number of the partitions of `pgbench_accounts`.
    pub(crate) partitions: Option<(String, u32)>,
}

/// pgbench's tables, in the order in which it names them.
pub(crate) const TABLES: [&str; 4] =
    ["pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers"];

/// Qualified names of pgbench's tables, with the schema in which the user's search_path finds them.
///
/// The session itself has an empty search_path.
pub(crate) struct Names(BTreeMap<String, String>);

impl Names {
    /// Looks for the tables in `schemas`, the user's search_path.
    ///
    /// # Errors
    /// The server does not tell.
    pub(crate) fn look(client: &mut ControlClient, schemas: &[String]) -> Result<Self, UsageError> {
        let list = |names: &mut dyn Iterator<Item = &str>| {
            names.map(escape_literal).collect::<Vec<_>>().join(", ")
        };
        let tables = list(&mut TABLES.into_iter());
        let names = list(&mut schemas.iter().map(String::as_str));
        let query = format!(
            "select c.relname, n.nspname from pg_catalog.pg_class c \
             join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.relname in \
             ({tables}) and n.nspname = any (array[{names}]::text[])"
        );
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        for message in client.simple_query(&query).map_err(|e| failed(&e, &query))? {
            let SimpleQueryMessage::Row(row) = message else { continue };
            // A server may lie about its columns too.
            let (Ok(Some(table)), Ok(Some(schema))) = (row.try_get(0), row.try_get(1)) else {
                continue;
            };
            let Some(place) = schemas.iter().position(|name| name == schema) else { continue };
            let first = found.entry(table.to_owned()).or_insert(place);
            *first = place.min(*first);
        }
        let spelled = |(table, place): (String, usize)| {
            let name = qualified(&schemas[place], &table);
            (table, name)
        };
        Ok(Self(found.into_iter().map(spelled).collect()))
    }

    /// Returns `table` as SQL spells it. A missing table has its plain name, so that the server's
    /// error is that of pgbench.
    pub(crate) fn spelled(&self, table: &str) -> String {
        self.0.get(table).cloned().unwrap_or_else(|| table.to_owned())
    }

    /// Returns all tables as SQL spells them, with commas between.
    pub(crate) fn all(&self) -> String {
        TABLES.map(|table| self.spelled(table)).join(", ")
    }
}

/// Returns `table` of `schema` as SQL spells it.
pub(crate) fn qualified(schema: &str, table: &str) -> String {
    format!("{}.{table}", escape_identifier(schema))
}

/// Reads the scale and the partitions of the tables, if a built-in script needs them.
///
/// # Errors
/// They are missing.
pub(crate) fn look(
    client: &mut ControlClient,
    schemas: &[String],
    database: &str,
    run: &Run,
    err: &mut dyn Write,
) -> Result<Tables, UsageError> {
    let asked = run.scale.unwrap_or(1);
    if !run.uses_builtin() {
        return Ok(Tables { scale: asked, partitions: None });
    }
    let missing = |what: String| {
        UsageError::new(what).hint(format!(
            "Perhaps you need to do initialization (\"pgbench -i\") in database \"{database}\"."
        ))
    };
    let names = Names::look(client, schemas)?;
    let count = format!("select count(*) from {}", names.spelled("pgbench_branches"));
    let count = one(client, &count).map_err(|e| {
        missing(format!("could not count number of branches: {}", server_words(&e, &count)))
    })?;
    // Of an empty table the scale is 0: the scripts meet an empty range, and their clients end.
    let scale = count.first().and_then(|n| n.parse::<u32>().ok()).ok_or_else(|| {
        missing(format!("invalid count(*) from pgbench_branches: \"{}\"", count.join("")))
    })?;
    if run.scale.is_some() {
        let _ = writeln!(
            err,
            "pgbench: warning: scale option ignored, using count from pgbench_branches table \
             ({scale})"
        );
    }
    // Servers before 10 have no partitions of this kind.
    let accounts = escape_literal(&names.spelled("pgbench_accounts"));
    let partitioned = one(
        client,
        &format!(
            "select p.partstrat, (select pg_catalog.count(*) from pg_catalog.pg_inherits i \
             where i.inhparent = p.partrelid) from pg_catalog.pg_partitioned_table p \
             where p.partrelid = {accounts}::regclass"
        ),
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

/// Returns the first row of `query`; empty if there is none.
fn one(client: &mut ControlClient, query: &str) -> Result<Vec<String>, tokio_postgres::Error> {
    let row = client.simple_query(query)?.into_iter().find_map(|m| match m {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    Ok(row.map_or_else(Vec::new, |row| {
        (0..row.len()).map(|n| row.get(n).unwrap_or_default().to_owned()).collect()
    }))
}

/// Vacuums the tables before a run.
///
/// # Errors
/// The server does not tell which tables there are.
pub(crate) fn vacuum(
    client: &mut ControlClient,
    schemas: &[String],
    notices: &Notices,
    run: &Run,
    err: &mut dyn Write,
) -> Result<(), UsageError> {
    if !run.vacuum {
        return Ok(());
    }
    let names = Names::look(client, schemas)?;
    let _ = write!(err, "starting vacuum...");
    for (doing, table) in [
        ("vacuum", "pgbench_branches"),
        ("vacuum", "pgbench_tellers"),
        ("truncate", "pgbench_history"),
    ] {
        attempt(client, notices, &format!("{doing} {}", names.spelled(table)), err);
    }
    let _ = writeln!(err, "end.");
    if run.vacuum_all {
        let _ = write!(err, "starting vacuum pgbench_accounts...");
        attempt(
            client,
            notices,
            &format!("vacuum analyze {}", names.spelled("pgbench_accounts")),
            err,
        );
        let _ = writeln!(err, "end.");
    }
    Ok(())
}

/// Executes `statement`. An error is printed, and the run goes on.
fn attempt(client: &mut ControlClient, notices: &Notices, statement: &str, err: &mut dyn Write) {
    if client.is_closed() {
        return;
    }
    let attempted = client.execute_alone(statement);
    notices.relay(err);
    if let Err(e) = attempted {
        let _ = writeln!(err, "pgbench: error: {}", server_words(&e, statement));
        let _ = writeln!(err, "pgbench: detail: (ignoring this error and continuing anyway)");
    }
}
