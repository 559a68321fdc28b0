//! Captures a workload: looks at the server, decides what can be replayed, and writes the folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use pgdyno_connect::conninfo::{self, ConnectOptions};
use pgdyno_connect::control::{self, Client};

use pgdyno_model::json::json;

use crate::activity::{Activity, StatementCounts};
use crate::ask::Statistics;
use crate::catalog::Table;
use crate::document::{
    Captured, CapturedStatement, CapturedTable, LeftOutStatement, LeftOutTable, Reason,
};
use crate::draw::Sequence;
use crate::error::CaptureError;
use crate::fill::fill;
use crate::folder::{self, ScriptFile, ScriptStatement};
use crate::inspect;
use crate::mix::{Part, mix};
use crate::schema_sql::schema_sql;
use crate::script::{FilledTable, Names, Prepared, filled_column, prepare};
use crate::statement::{Statement, parse};
use crate::workload_file;

/// How to capture a workload.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// Schema whose tables and statements are captured.
    pub schema: String,
    /// Statements at most, those with the most time first (count).
    pub top: usize,
    /// Stretch that is watched; none: everything since the statistics were reset.
    pub watch: Option<Duration>,
}

/// Words that begin a statement that begins or ends a transaction.
const CONTROL: [&str; 8] =
    ["begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release"];

/// Functions that PostgreSQL has.
const FUNCTIONS: &str = "SELECT DISTINCT proname::text FROM pg_proc \
                         WHERE pronamespace = 'pg_catalog'::regnamespace";

const READ_ONLY: &str = "SET default_transaction_read_only = on";

/// SQLSTATEs of parameters without a type: an operator, a function or a type that is ambiguous.
const UNTYPED: [&str; 3] = ["42725", "42P18", "42P08"];

/// Captures the load of the server of `connect` into `folder`, which is not there yet or empty.
/// The server is only read.
///
/// # Errors
/// The server or the folder cannot be used, or no statement can be replayed. Nothing is written.
pub fn capture(
    connect: &ConnectOptions,
    folder: &Path,
    options: &CaptureOptions,
    stop: &AtomicBool,
) -> Result<Captured, CaptureError> {
    folder::check(folder)?;
    let (mut session, target) = conninfo::resolve(connect)?.connect()?;
    // A pooler is refused before the watch.
    drop(control::connect(&target)?);
    let wrong = |e: &_| CaptureError::query("set the session read only", e);
    session.batch_execute(READ_ONLY).map_err(|e| wrong(&e))?;
    let mut statistics = Statistics::new(session, &options.schema)?;
    let activity = match options.watch {
        Some(length) => statistics.watch(length, &|| stop.load(Ordering::Relaxed))?,
        None => statistics.since_reset()?,
    };
    let mut client = control::connect(&target)?;
    client.batch_execute(READ_ONLY).map_err(|e| wrong(&e))?;
    let mut parser = control::connect_to_schema(&target, &options.schema)?;
    let mut work = Work::new(&mut client, &mut parser, options, &activity)?;
    let found = work.statements();
    let captured = found.len();
    if captured == 0 {
        return Err(CaptureError::NoStatements {
            schema: options.schema.clone(),
            statements: activity.statements.len(),
        });
    }
    let files = work.files(&activity, found)?;
    folder::write(folder, &files.files)?;
    Ok(files.captured)
}

/// Statement that can be replayed.
struct Found {
    text: String,
    counts: StatementCounts,
    prepared: Prepared,
    label: String,
    /// Place within a transaction.
    order: u64,
}

/// Files of the workload, and what the first of them says.
struct Files {
    files: Vec<(String, String)>,
    captured: Captured,
}

/// Knowledge of the server while statements are judged.
struct Work<'a> {
    /// Session in which names are PostgreSQL's own alone.
    client: &'a mut Client,
    /// Session in which names are those of the schema, too. Statements are parsed in it, and none
    /// is executed: others may have put functions there.
    parser: &'a mut Client,
    options: &'a CaptureOptions,
    /// Statements with a text of one kind, with their counts.
    texts: Vec<(Statement, StatementCounts)>,
    /// Tables that can be made, with how they are filled.
    tables: BTreeMap<String, FilledTable>,
    /// Names of tables, those first that others refer to.
    order: Vec<String>,
    tables_left_out: Vec<LeftOutTable>,
    left_out: Vec<LeftOutStatement>,
    /// Functions that PostgreSQL has.
    functions: BTreeSet<String>,
}

impl<'a> Work<'a> {
    fn new(
        client: &'a mut Client,
        parser: &'a mut Client,
        options: &'a CaptureOptions,
        activity: &Activity,
    ) -> Result<Self, CaptureError> {
        let (texts, left_out) = texts(activity);
        let relations = texts.iter().flat_map(|(statement, _)| &statement.relations);
        let wanted: BTreeSet<String> = relations
            .filter(|relation| relation.schema.as_ref().is_none_or(|s| *s == options.schema))
            .map(|relation| relation.name.clone())
            .collect();
        let mut tables = inspect::tables(client, &options.schema, &wanted)?;
        let mut tables_left_out = Vec::new();
        tables.retain(|name, table| match table.obstacle.take() {
            Some(obstacle) => {
                tables_left_out.push(LeftOutTable { name: name.clone(), obstacle });
                false
            }
            None => true,
        });
        let order = parents_first(&tables);
        let filled = order.iter().enumerate().map(|(at, name)| {
            let filled = fill(&tables[name], &tables, &order[..at]);
            (name.clone(), FilledTable { table: tables[name].clone(), filled })
        });
        let filled = filled.collect();
        let functions = client
            .query(FUNCTIONS, &[])
            .map_err(|e| CaptureError::query("read the names of functions", &e))?;
        let functions = functions.iter().map(|row| row.get(0)).collect();
        Ok(Self {
            client,
            parser,
            options,
            texts,
            tables: filled,
            order,
            tables_left_out,
            left_out,
            functions,
        })
    }

    /// Returns the statements that can be replayed. The others are left out.
    fn statements(&mut self) -> Vec<Found> {
        let mut found: Vec<Found> = Vec::new();
        for (statement, counts) in std::mem::take(&mut self.texts) {
            let judged = match found.len() < self.options.top {
                true => self.judge(&statement, counts, found.len() + 1),
                false => Err(Reason::Beyond),
            };
            match judged {
                Ok(one) => found.push(one),
                Err(reason) => {
                    let text = (reason != Reason::HoldsValues).then(|| statement.text());
                    self.left_out.push(LeftOutStatement { text, reason, counts });
                }
            }
        }
        self.left_out.sort_by(|a, b| b.counts.time_ms.total_cmp(&a.counts.time_ms));
        found
    }

    /// Returns statement `number` as it is replayed, or why it cannot be.
    fn judge(
        &mut self,
        statement: &Statement,
        counts: StatementCounts,
        number: usize,
    ) -> Result<Found, Reason> {
        let prefix = format!("s{number}_");
        let text = statement.text();
        let types = self.types(&text)?;
        let names = Names {
            schema: &self.options.schema,
            tables: &self.tables,
            functions: &self.functions,
        };
        let prepared = prepare(statement, &names, &types, counts.rows_per_call(), &prefix)?;
        self.parser.prepare(&prepared.checked_sql).map_err(|e| refused(&e))?;
        let table = statement.relations.first().and_then(|r| self.tables.get(&r.name));
        let word = text.split(|c: char| !c.is_ascii_alphabetic()).find(|word| !word.is_empty());
        let word = word.unwrap_or_default().to_ascii_lowercase();
        let name = table.map(|table| format!("-{}", table.table.name)).unwrap_or_default();
        let kind = match word.as_str() {
            "select" => 0,
            "insert" => 2,
            _ => 1,
        };
        // Rows that many transactions want are locked as late as possible.
        let few = u64::from(u32::MAX).saturating_sub(table.map_or(0, |table| table.table.rows));
        let order = (kind << 40) + few;
        Ok(Found {
            text: statement.text(),
            counts,
            label: format!("{word}{name}"),
            prepared,
            order,
        })
    }

    /// Returns the types of the parameters of `text`; none if the server cannot tell some: then the
    /// statement had values there.
    fn types(&mut self, text: &str) -> Result<Vec<String>, Reason> {
        match self.parser.prepare(text) {
            Ok(known) => Ok(known.params().iter().map(|t| t.name().to_owned()).collect()),
            Err(e) if e.code().is_some_and(|code| UNTYPED.contains(&code.code())) => Ok(Vec::new()),
            Err(e) => Err(refused(&e)),
        }
    }

    /// Makes the files of the folder.
    fn files(mut self, activity: &Activity, found: Vec<Found>) -> Result<Files, CaptureError> {
        let (server_version, settings) = self.settings()?;
        let used = self.used_tables(&found);
        let tables: Vec<&FilledTable> = used.iter().map(|name| &self.tables[name]).collect();
        let pairs: Vec<_> = tables.iter().map(|one| (&one.table, &one.filled)).collect();
        let sql = schema_sql(&pairs, &sequences(&tables, &found));
        let omissions = tables.iter().flat_map(|one| one.filled.omissions.iter().cloned());
        let blocks = activity.blocks();
        let scripts = scripts(activity, blocks, &found);
        let captured = Captured {
            server_version,
            captured_at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            table_schema: self.options.schema.clone(),
            seconds: activity.seconds,
            database: activity.database,
            blocks,
            sessions: activity.sessions.clone(),
            total: activity.total(),
            forgotten: activity.forgotten,
            settings,
            tables: tables.iter().map(|one| CapturedTable::from(&one.table)).collect(),
            omissions: omissions.chain(sql.omissions).collect(),
            statements: captured_statements(found),
            statements_left_out: self.left_out,
            tables_left_out: self.tables_left_out,
        };
        let document = json(&captured).map_err(CaptureError::Json)?;
        let mut files = vec![
            ("workload.toml".to_owned(), workload_file::workload(&captured, &tables, &scripts)),
            ("experiment.toml".to_owned(), workload_file::experiment(&captured)),
            ("schema.sql".to_owned(), sql.schema),
            ("keys.sql".to_owned(), sql.keys),
            (Captured::FILE.to_owned(), document + "\n"),
        ];
        files.extend(scripts.into_iter().map(|script| (script.name, script.text)));
        Ok(Files { files, captured })
    }

    /// Returns the tables that `found` name, and those that these refer to, parents first.
    fn used_tables(&self, found: &[Found]) -> Vec<String> {
        let mut used: BTreeSet<&String> =
            found.iter().flat_map(|one| &one.prepared.tables).collect();
        for name in self.order.iter().rev() {
            if used.contains(name) {
                let table = &self.tables[name].table;
                let parents = table.foreign_keys.iter().map(|key| &key.parent);
                used.extend(parents.filter(|parent| self.tables.contains_key(*parent)));
            }
        }
        self.order.iter().filter(|name| used.contains(name)).cloned().collect()
    }

    /// Returns the server's version, and settings that the counts depend on.
    fn settings(&mut self) -> Result<(String, BTreeMap<String, String>), CaptureError> {
        let names = [
            "server_version",
            "shared_buffers",
            "synchronous_commit",
            "full_page_writes",
            "wal_compression",
            "track_io_timing",
            "pg_stat_statements.track",
            "pg_stat_statements.track_utility",
            "max_wal_size",
            "checkpoint_timeout",
        ];
        let asked = "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY ($1)";
        let rows = self.client.query(asked, &[&names.to_vec()]);
        let rows = rows.map_err(|e| CaptureError::query("read settings", &e))?;
        let mut settings: BTreeMap<String, String> =
            rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        Ok((settings.remove("server_version").unwrap_or_default(), settings))
    }
}

/// Returns the sequences of `tables`, and those that give `found` new values, by name.
fn sequences(tables: &[&FilledTable], found: &[Found]) -> BTreeMap<String, (String, Sequence)> {
    let of_statements = found.iter().flat_map(|one| one.prepared.sequences.iter().cloned());
    let of_columns = tables.iter().flat_map(|one| {
        let serial = one.table.columns.iter().filter(|column| column.is_serial);
        serial.filter_map(|column| {
            Some((one.table.name.clone(), filled_column(one, column)?.sequence()?))
        })
    });
    let all = of_columns.chain(of_statements);
    all.map(|(table, sequence)| (sequence.name.clone(), (table, sequence))).collect()
}

/// Returns the scripts of `found`, of which `blocks` blocks were committed.
fn scripts(activity: &Activity, blocks: u64, found: &[Found]) -> Vec<ScriptFile> {
    let parts = found.iter().map(|one| Part { calls: one.counts.calls, order: one.order });
    // Each session may have been in a transaction at a look.
    let slack = activity.sessions.connected.ceil() as u64;
    let parts: Vec<Part> = parts.collect();
    let mixed = mix(&parts, blocks, activity.database.commits, slack);
    let statements = found.iter().zip(1..).map(|(one, number)| ScriptStatement {
        number,
        label: one.label.clone(),
        sets: one.prepared.sets.clone(),
        sql: one.prepared.sql.clone(),
    });
    folder::scripts(&mixed, &statements.collect::<Vec<_>>())
}

fn captured_statements(found: Vec<Found>) -> Vec<CapturedStatement> {
    let statement = |(one, number): (Found, usize)| CapturedStatement {
        number,
        text: one.text,
        guessed: one.prepared.guessed,
        counts: one.counts,
    };
    found.into_iter().zip(1..).map(statement).collect()
}

fn refused(error: &tokio_postgres::Error) -> Reason {
    let code = error.code().map(|code| code.code().to_owned());
    Reason::Refused { sqlstate: code.unwrap_or_else(|| "none".to_owned()) }
}

/// Returns the statements of `activity`, those with equal texts as one, and those that are left out
/// already.
fn texts(activity: &Activity) -> (Vec<(Statement, StatementCounts)>, Vec<LeftOutStatement>) {
    let mut texts: Vec<(String, Statement, StatementCounts)> = Vec::new();
    let mut left_out = Vec::new();
    for one in &activity.statements {
        let counts = one.counts;
        let mut leave = |text, reason| left_out.push(LeftOutStatement { text, reason, counts });
        let Some(text) = &one.text else {
            leave(None, Reason::NoRight);
            continue;
        };
        let word = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        if CONTROL.iter().any(|control| word.eq_ignore_ascii_case(control)) {
            continue;
        }
        match parse(text) {
            Err(reason) => leave(None, reason),
            Ok(statement) => {
                let text = statement.text();
                match texts.iter_mut().find(|(known, ..)| *known == text) {
                    Some((_, _, known)) => *known = known.plus(counts),
                    None => texts.push((text, statement, counts)),
                }
            }
        }
    }
    texts.sort_by(|a, b| b.2.time_ms.total_cmp(&a.2.time_ms));
    (texts.into_iter().map(|(_, statement, counts)| (statement, counts)).collect(), left_out)
}

/// Returns the names of `tables`, each behind those that it refers to, where they form no circle.
fn parents_first(tables: &BTreeMap<String, Table>) -> Vec<String> {
    let mut order: Vec<String> = Vec::new();
    let mut left: Vec<&String> = tables.keys().collect();
    while !left.is_empty() {
        let is_ready = |name: &&String| {
            tables[*name].foreign_keys.iter().all(|key| {
                key.parent == **name
                    || order.contains(&key.parent)
                    || !tables.contains_key(&key.parent)
            })
        };
        let at = left.iter().position(is_ready).unwrap_or(0);
        order.push(left.remove(at).clone());
    }
    order
}
