//! The tables' rows, by scans that trust no index and by the primary keys.

use std::collections::BTreeMap;

use pgdyno_connect::control::{Client, error_text};
use pgdyno_dataset::workload::DataSet;
use pgdyno_durability::{Numbers, Observed, Row, TableRows, Unseen};
use pgdyno_model::ledger::{Effect, Token};

use super::session::{PLAIN, Terms, VerifySession, unseen};
use crate::workload::{Amount, LoadedTable};

/// Leaves the planner nothing but sequential scans.
const BY_SCAN: &str = "SET enable_indexscan = off; SET enable_indexonlyscan = off; \
    SET enable_bitmapscan = off; SET enable_seqscan = on; \
    SET enable_sort = on; SET max_parallel_workers_per_gather = 0";
/// Leaves it index scans, which read the table by the index.
const BY_KEY: &str = "SET enable_indexscan = on; SET enable_indexonlyscan = off; \
    SET enable_bitmapscan = off; SET enable_seqscan = off; \
    SET enable_sort = off; SET max_parallel_workers_per_gather = 0";
/// How many keys of each fault an example names.
const NAMED: usize = 5;

/// How rows are come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// A sequential scan.
    Scan,
    /// The primary key.
    Key,
}

/// Counts the rows of each table of the data set.
pub(super) fn count(
    session: &mut VerifySession<'_>,
    terms: &Terms<'_>,
    access: Access,
) -> Observed<Vec<TableRows>> {
    let by = if access == Access::Scan { "a scan" } else { "its key" };
    let tables = terms.load.loaded.iter();
    tables
        .map(|loaded| {
            let name = format!("counting {} by {by}", loaded.table);
            let rows = loaded_rows(&terms.workload.data, loaded.table, terms.scale);
            session.ask(&name, |client| count_table(client, loaded, rows, access))
        })
        .collect()
}

/// Rows that `table` of `data` was loaded with (count).
fn loaded_rows(data: &DataSet, table: &str, scale: u32) -> u64 {
    // A table of children, whose number a seed draws, is none that a load leaves as it is.
    let spec = data.tables.iter().find(|spec| spec.name == table);
    spec.map_or(0, |spec| data.rows(spec, scale, 0))
}

/// Counts the rows of `table`, which was loaded with so many. The server counts, so that a large
/// table works too.
fn count_table(
    client: &mut Client,
    table: &LoadedTable,
    loaded: u64,
    access: Access,
) -> Observed<TableRows> {
    let LoadedTable { table: name, key, indexed, constant } = table;
    // A condition that every row meets, so that the index serves it.
    let every = format!("{indexed} >= -2147483648");
    let sql = format!(
        "SELECT count(*), count(DISTINCT {key}), min({key})::int8, max({key})::int8, \
         count(*) FILTER (WHERE ({constant}) IS NOT TRUE) FROM {name} WHERE {every}"
    );
    match access {
        Access::Scan => plan(client, BY_SCAN, &sql, &format!("Seq Scan on {name}"))?,
        Access::Key => plan(client, BY_KEY, &sql, &format!("Index Scan using {name}_pkey"))?,
    }
    let row = client.query_one(&sql, &[]).map_err(|e| unseen(&e))?;
    let number = |column: usize| u64::try_from(row.get::<_, i64>(column)).unwrap_or_default();
    let mut found = TableRows {
        table: (*name).to_owned(),
        loaded,
        rows: number(0),
        keys: number(1),
        lowest: row.get(2),
        highest: row.get(3),
        changed: number(4),
        examples: Vec::new(),
    };
    found.examples = examples(client, table, &found);
    Ok(found)
}

/// Some keys of each fault that the numbers tell of. They are the finding: an example that cannot
/// be had takes nothing from it.
fn examples(client: &mut Client, table: &LoadedTable, found: &TableRows) -> Vec<String> {
    let (LoadedTable { table: name, key, constant, .. }, loaded) = (table, found.loaded);
    let named = if key.starts_with('(') { "the keys" } else { *key };
    let faults = [
        (
            found.keys < loaded,
            "lacks",
            format!(
                "SELECT n FROM generate_series(1::int8, {loaded}) n \
                 WHERE NOT EXISTS (SELECT FROM {name} WHERE {key} = n) ORDER BY n"
            ),
        ),
        (
            found.keys < found.rows,
            "holds more than once",
            format!("SELECT {key}::int8 FROM {name} GROUP BY {key} HAVING count(*) > 1 ORDER BY 1"),
        ),
        (
            found.changed > 0,
            "holds changed",
            format!("SELECT {key}::int8 FROM {name} WHERE ({constant}) IS NOT TRUE ORDER BY 1"),
        ),
    ];
    let seen = faults.iter().filter(|(is_seen, ..)| *is_seen);
    seen.map(|(_, what, sql)| match client.query(&format!("{sql} LIMIT {NAMED}"), &[]) {
        Ok(keys) => {
            let keys: Vec<String> =
                keys.iter().map(|row| row.get::<_, i64>(0).to_string()).collect();
            let more = if keys.len() < NAMED { "" } else { ", …" };
            format!("it {what} {named} {}{more}", keys.join(", "))
        }
        Err(e) => format!("which rows it {what} cannot be read: {}", error_text(&e)),
    })
    .collect()
}

/// Sees to it that `sql` is executed by `node`, and by nothing else that would read the tokens.
fn plan(client: &mut Client, settings: &str, sql: &str, node: &str) -> Observed<()> {
    client.batch_execute(settings).map_err(|e| unseen(&e))?;
    let lines = client.query(&format!("EXPLAIN {sql}"), &[]).map_err(|e| unseen(&e))?;
    let plan: Vec<String> = lines.iter().map(|row| row.get(0)).collect();
    if plan.iter().any(|line| line.contains(node)) {
        return Ok(());
    }
    Err(Unseen::CouldNotRun(format!("the planner gives no {node}: {}", plan.join("; "))))
}

pub(super) fn tokens(client: &mut Client) -> Observed<Vec<Row>> {
    let sql = "SELECT client, sequence, aid, tid, bid, delta FROM pgdyno_token";
    plan(client, BY_SCAN, sql, "Seq Scan on pgdyno_token")?;
    let rows = client.query(sql, &[]).map_err(|e| unseen(&e))?;
    let int = |row: &tokio_postgres::Row, column: usize| i64::from(row.get::<_, i32>(column));
    rows.iter()
        .map(|row| {
            Ok(Row {
                token: token(row)?,
                effect: Effect {
                    account: int(row, 2),
                    teller: int(row, 3),
                    branch: int(row, 4),
                    delta: int(row, 5),
                },
            })
        })
        .collect()
}

pub(super) fn tokens_by_key(client: &mut Client) -> Observed<Vec<Token>> {
    let sql = "SELECT client, sequence FROM pgdyno_token ORDER BY client, sequence";
    plan(client, BY_KEY, sql, "Index Scan using pgdyno_token_pkey")?;
    client.query(sql, &[]).map_err(|e| unseen(&e))?.iter().map(token).collect()
}

/// The numbers that the tokens' sequence gave, and where it stands.
pub(super) fn numbers(client: &mut Client) -> Observed<Numbers> {
    client.batch_execute(PLAIN).map_err(|e| unseen(&e))?;
    let sql = "SELECT (SELECT last_value FROM pgdyno_token_number_seq), max(number), \
        count(*) - count(DISTINCT number) FROM pgdyno_token";
    let row = client.query_one(sql, &[]).map_err(|e| unseen(&e))?;
    Ok(Numbers { last: row.get(0), highest: row.get(1), repeated: row.get(2) })
}

fn token(row: &tokio_postgres::Row) -> Observed<Token> {
    let (client, sequence): (i32, i64) = (row.get(0), row.get(1));
    match (u32::try_from(client), u64::try_from(sequence)) {
        (Ok(client), Ok(sequence)) => Ok(Token { client, sequence }),
        _ => Err(Unseen::Damaged(format!("a row bears the token ({client}, {sequence})"))),
    }
}

/// The amounts of a table's rows, by key.
pub(super) fn amounts(client: &mut Client, amount: &Amount) -> Observed<BTreeMap<i64, i64>> {
    let Amount { table, sql, is_unique, .. } = amount;
    plan(client, BY_SCAN, sql, &format!("Seq Scan on {table}"))?;
    let mut amounts = BTreeMap::new();
    for row in client.query(*sql, &[]).map_err(|e| unseen(&e))? {
        let (key, more): (i64, i64) = (row.get(0), row.get(1));
        let was: Option<i64> = amounts.get(&key).copied();
        if *is_unique && was.is_some() {
            return Err(Unseen::Damaged(format!("{table} holds {key} twice")));
        }
        amounts.insert(key, was.unwrap_or(0) + more);
    }
    Ok(amounts)
}
