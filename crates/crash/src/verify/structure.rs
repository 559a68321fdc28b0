//! Tables, indexes and maps as files: what the server's own checks and page views say of them.

use pgdyno_connect::control::Client;
use pgdyno_durability::{Observed, Unseen};

use super::session::{PLAIN, VerifySession, unseen};

/// Findings of one relation that are reported at most (count).
const NAMED: usize = 10;

/// When a complaint of the visibility map's is looked at again.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(1);

/// Permanent B-trees that serve queries, each with its table.
const BTREES: &str = "SELECT c.oid, c.oid::regclass::text, t.oid, t.oid::regclass::text, \
    t.relkind = 'r' FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid JOIN pg_catalog.pg_am a ON a.oid = c.relam \
    JOIN pg_catalog.pg_class t ON t.oid = i.indrelid \
    WHERE a.amname = 'btree' AND c.relkind = 'i' AND c.relpersistence = 'p' AND i.indisvalid \
    AND i.indisready";

/// Permanent tables and what is stored like one.
const TABLES: &str = "SELECT c.oid, c.oid::regclass::text FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_am a ON a.oid = c.relam \
    WHERE a.amname = 'heap' AND c.relkind IN ('r', 't', 'm') AND c.relpersistence = 'p'";

/// Entries of the leaves of B-tree $3 (its oid; $4 its name) that lead to no used line pointer of
/// table $1 ($2).
///
/// A page of zeros has neither pointers nor entries: what extended the file was not replayed, and
/// that is no fault. The first item of a leaf with a right sibling is its high key, which leads
/// nowhere. A posting list leads to several tuples. A line pointer that is dead or redirects is
/// used. The pages are taken with their numbers as int4, which also versions before 14 accept.
const DANGLING: &str = "WITH tuples AS MATERIALIZED ( \
        SELECT n AS block, count(*) AS pointers, \
        array_agg(i.lp::int4) FILTER (WHERE i.lp_flags = 0) AS unused \
        FROM generate_series(0, (pg_catalog.pg_relation_size($1::oid) / \
            current_setting('block_size')::int8)::int4 - 1) n \
        CROSS JOIN LATERAL heap_page_items(get_raw_page($2::text, n)) i GROUP BY n), \
    filled AS MATERIALIZED ( \
        SELECT n FROM \
        generate_series(1, (pg_catalog.pg_relation_size($3::oid) / \
            current_setting('block_size')::int8)::int4 - 1) n \
        WHERE (page_header(get_raw_page($4::text, n))).upper <> 0), \
    leaves AS MATERIALIZED ( \
        SELECT n, s.btpo_next FROM filled CROSS JOIN LATERAL bt_page_stats($4::text, n) s \
        WHERE s.type = 'l'), \
    entries AS ( \
        SELECT n, i.itemoffset::int4 AS item, (tid::text::point)[0]::int8 AS block, \
        (tid::text::point)[1]::int4 AS lp \
        FROM leaves CROSS JOIN LATERAL bt_page_items($4::text, n) i \
        CROSS JOIN LATERAL unnest(coalesce(i.tids, ARRAY[i.htid])) tid \
        WHERE i.itemoffset > 1 OR btpo_next = 0) \
    SELECT n, item, e.block, e.lp, count(*) OVER () FROM entries e \
    LEFT JOIN tuples t ON t.block = e.block \
    WHERE t.block IS NULL OR e.lp > t.pointers OR e.lp = ANY (t.unused) LIMIT $5";

/// Why an extension cannot be asked, if it cannot.
fn has_extension(client: &mut Client, name: &str) -> Observed<()> {
    let sql = format!("pg_catalog.pg_extension WHERE extname = '{name}'");
    require_row(client, &sql, &format!("this installation lacks the extension {name}"))
}

/// Looks for a row of `from`; why a check does not apply where there is none.
fn require_row(client: &mut Client, from: &str, why: &str) -> Observed<()> {
    let sql = format!("SELECT count(*) > 0 FROM {from}");
    match client.query_one(&sql, &[]).map_err(|e| unseen(&e))?.get(0) {
        true => Ok(()),
        false => Err(Unseen::NotApplicable(why.to_owned())),
    }
}

/// A relation to check.
struct Relation {
    oid: u32,
    name: String,
}

fn relations(client: &mut Client, sql: &str) -> Observed<Vec<Relation>> {
    let rows = client.query(sql, &[]).map_err(|e| unseen(&e))?;
    Ok(rows.iter().map(|row| Relation { oid: row.get(0), name: row.get(1) }).collect())
}

/// Returns the complaints of `check` about each of `relations`, one step a relation. A relation
/// that the server refuses to read gives one, too.
fn complaints(
    session: &mut VerifySession<'_>,
    doing: &str,
    relations: &[Relation],
    check: impl Fn(&mut Client, &Relation) -> Observed<Vec<String>>,
) -> Observed<Vec<String>> {
    let mut complaints = Vec::new();
    for relation in relations {
        let name = &relation.name;
        match session.ask(&format!("{doing} {name}"), |client| check(client, relation)) {
            Ok(found) => complaints.extend(found.into_iter().map(|what| format!("{name}: {what}"))),
            Err(Unseen::Damaged(what)) => complaints.push(format!("{name}: {what}")),
            // What was found before is a finding, whatever keeps the rest from being looked at.
            Err(other) if complaints.is_empty() => return Err(other),
            Err(_) => return Ok(complaints),
        }
    }
    Ok(complaints)
}

/// Checks the whole database with amcheck in two queries. Less thorough than the check of the
/// load's tables: tables' keys are not looked for in their B-trees.
pub(super) fn at_once(client: &mut Client) -> Observed<Vec<String>> {
    has_extension(client, "amcheck")?;
    let sql = format!(
        "SELECT bt_index_check(b.oid::regclass, false) FROM ({BTREES}) b (oid, name, t, u, v)"
    );
    client.query(&sql, &[]).map_err(|e| unseen(&e))?;
    require_heap_check(client)?;
    let sql = format!(
        "SELECT format('%s, block %s, tuple %s: %s', t.name, h.blkno, h.offnum, h.msg) \
         FROM ({TABLES}) t (oid, name) CROSS JOIN LATERAL verify_heapam(t.oid::regclass) h"
    );
    let found = client.query(&sql, &[]).map_err(|e| unseen(&e))?;
    Ok(found.iter().map(|row| row.get(0)).collect())
}

fn require_heap_check(client: &mut Client) -> Observed<()> {
    let function = "pg_catalog.pg_proc WHERE proname = 'verify_heapam'";
    require_row(client, function, "amcheck before PostgreSQL 14 has no verify_heapam")
}

/// Checks every B-tree of the database: each key of its table is looked for in it, each page held
/// against its parent.
pub(super) fn btrees(session: &mut VerifySession<'_>) -> Observed<Vec<String>> {
    let all = session.ask("listing the B-trees", |client| {
        has_extension(client, "amcheck")?;
        let settings = format!("{PLAIN}; SET max_parallel_maintenance_workers = 0");
        client.batch_execute(&settings).map_err(|e| unseen(&e))?;
        relations(client, BTREES)
    })?;
    complaints(session, "amcheck of", &all, |client, index| {
        let sql = "SELECT bt_index_parent_check($1::oid::regclass, true, true)";
        client.execute(sql, &[&index.oid]).map_err(|e| unseen(&e))?;
        Ok(Vec::new())
    })
}

/// Every table of the database.
pub(super) fn heaps(session: &mut VerifySession<'_>) -> Observed<Vec<String>> {
    let all = session.ask("listing the tables", |client| {
        has_extension(client, "amcheck")?;
        require_heap_check(client)?;
        relations(client, TABLES)
    })?;
    complaints(session, "amcheck of", &all, |client, table| {
        let sql =
            "SELECT blkno, offnum, msg FROM verify_heapam($1::oid::regclass, check_toast => true)";
        let found = client.query(sql, &[&table.oid]).map_err(|e| unseen(&e))?;
        let line = |row: &tokio_postgres::Row| {
            let (block, offset): (Option<i64>, Option<i32>) = (row.get(0), row.get(1));
            let message: String = row.get(2);
            let (block, offset) = (block.unwrap_or(-1), offset.unwrap_or(-1));
            format!("block {block}, tuple {offset}: {message}")
        };
        Ok(found.iter().map(line).collect())
    })
}

/// Every entry of every B-tree on a table leads to a used line pointer of it. amcheck looks the
/// other way: from the table into the index. Tables that hold others' long values are left out, for
/// they cannot be locked.
pub(super) fn pointers(session: &mut VerifySession<'_>) -> Observed<Vec<String>> {
    let all = session.ask("listing the B-trees", |client| {
        has_extension(client, "pageinspect")?;
        let posting = "pg_catalog.pg_proc WHERE proname = 'bt_page_items' \
            AND 'tids' = ANY (proargnames)";
        let why = "pageinspect before PostgreSQL 13 does not tell where index entries lead";
        require_row(client, posting, why)?;
        client.batch_execute(PLAIN).map_err(|e| unseen(&e))?;
        let rows = client.query(BTREES, &[]).map_err(|e| unseen(&e))?;
        let pair = |row: &tokio_postgres::Row| {
            let index = Relation { oid: row.get(0), name: row.get(1) };
            (index, Relation { oid: row.get(2), name: row.get(3) })
        };
        Ok(rows.iter().filter(|row| row.get::<_, bool>(4)).map(pair).collect::<Vec<_>>())
    })?;
    let (indexes, tables): (Vec<Relation>, Vec<Relation>) = all.into_iter().unzip();
    let table_of =
        |index: &Relation| indexes.iter().position(|i| i.oid == index.oid).map(|at| &tables[at]);
    complaints(session, "comparing the pages of", &indexes, |client, index| {
        let Some(table) = table_of(index) else { return Ok(Vec::new()) };
        // No vacuum takes entries and then tuples away while both are read.
        let mut transaction = client.transaction().map_err(|e| unseen(&e))?;
        let lock = format!("LOCK TABLE {} IN SHARE MODE", table.name);
        transaction.batch_execute(&lock).map_err(|e| unseen(&e))?;
        let most = i64::try_from(NAMED).unwrap_or(i64::MAX);
        let found = transaction
            .query(DANGLING, &[&table.oid, &table.name, &index.oid, &index.name, &most])
            .map_err(|e| unseen(&e))?;
        let mut told: Vec<String> = found
            .iter()
            .map(|row| {
                let (page, item, block, pointer): (i32, i32, i64, i32) =
                    (row.get(0), row.get(1), row.get(2), row.get(3));
                let table = &table.name;
                format!(
                    "page {page}, item {item} leads to ({block},{pointer}) of {table}, where no \
                     tuple is"
                )
            })
            .collect();
        let all = found.first().map_or(0, |row| row.get::<_, i64>(4));
        if all > most {
            told.push(format!("{all} entries in all lead to no tuple"));
        }
        Ok(told)
    })
}

/// The visibility map of every table: what it calls all-visible or all-frozen is.
pub(super) fn visibility(session: &mut VerifySession<'_>) -> Observed<Vec<String>> {
    let all = session.ask("listing the tables", |client| {
        has_extension(client, "pg_visibility")?;
        relations(client, TABLES)
    })?;
    complaints(session, "checking the visibility map of", &all, |client, table| {
        let mut told = Vec::new();
        for (function, claim) in
            [("pg_check_visible", "all-visible"), ("pg_check_frozen", "all-frozen")]
        {
            let sql = format!("SELECT t::text FROM {function}($1::oid::regclass) t");
            let mut look = || client.query(&sql, &[&table.oid]).map_err(|e| unseen(&e));
            let mut found = look()?;
            if !found.is_empty() {
                // The horizon that it compares with can go back for a moment (before PostgreSQL
                // 18): damage stays.
                std::thread::sleep(AGAIN);
                found = look()?;
            }
            let tuples =
                found.iter().take(NAMED).map(|row| row.get::<_, String>(0)).collect::<Vec<_>>();
            if !tuples.is_empty() {
                let (count, tuples) = (found.len(), tuples.join(", "));
                told.push(format!(
                    "{count} tuples on pages that the map calls {claim} are not: {tuples}"
                ));
            }
        }
        Ok(told)
    })
}
