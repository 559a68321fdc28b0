//! `-i`: pgbench's four tables, their rows and their keys.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgdyno_connect::control::ControlClient;
use postgres_protocol::escape::{escape_identifier, escape_literal};

use crate::connection::{Connected, Notices};
use crate::request::{Initialize, PartitionMethod};
use crate::server_messages::{failed, server_version};
use crate::tables::{Names, qualified};
use crate::usage_error::{Stopped, UsageError};

/// Rows for one unit of scale.
const ACCOUNTS: u64 = 100_000;
const TELLERS: u64 = 10;
/// The tables in the order of their making, with their columns and whether rows fill them.
const COLUMNS: [(&str, &str, bool); 4] = [
    (
        "pgbench_history",
        "tid int, bid int, aid {aid}, delta int, mtime timestamp, filler char(22)",
        false,
    ),
    ("pgbench_tellers", "tid int not null, bid int, tbalance int, filler char(84)", true),
    ("pgbench_accounts", "aid {aid} not null, bid int, abalance int, filler char(84)", true),
    ("pgbench_branches", "bid int not null, bbalance int, filler char(88)", true),
];
/// The tables that rows fill. The filler of accounts is blanks: the server pads the empty string.
const FILLED: [Filling; 3] = [
    Filling {
        table: "pgbench_branches",
        columns: "bid, bbalance",
        rows_per_scale: 1,
        values: "n, 0",
        write: |row, chunk| writeln!(chunk, "{row}\t0"),
    },
    Filling {
        table: "pgbench_tellers",
        columns: "tid, bid, tbalance",
        rows_per_scale: TELLERS,
        values: "n, (n - 1) / 10 + 1, 0",
        write: |row, chunk| writeln!(chunk, "{row}\t{}\t0", (row - 1) / TELLERS + 1),
    },
    Filling {
        table: "pgbench_accounts",
        columns: "aid, bid, abalance, filler",
        rows_per_scale: ACCOUNTS,
        values: "n, (n - 1) / 100000 + 1, 0, ''",
        write: |row, chunk| writeln!(chunk, "{row}\t{}\t0\t", (row - 1) / ACCOUNTS + 1),
    },
];
/// From this scale on account numbers do not fit into an `int`.
const BIG_SCALE: u32 = 20_000;
/// Rows between two looks at the stop flag; also one write to the COPY stream.
const ROWS_PER_CHUNK: u64 = 1000;
/// Rows between two progress lines.
const ROWS_PER_LINE: u64 = 100_000;
/// Time between progress lines with `--quiet`.
const QUIET: Duration = Duration::from_secs(5);
/// How often the stop flag is looked at while the server works.
const WATCH: Duration = Duration::from_millis(50);

/// How a table is filled.
struct Filling {
    table: &'static str,
    columns: &'static str,
    rows_per_scale: u64,
    /// The columns of row `n`, in SQL.
    values: &'static str,
    /// Writes a row in COPY's text format.
    write: fn(u64, &mut Vec<u8>) -> std::io::Result<()>,
}

struct Work<'a> {
    client: ControlClient,
    /// The schemas that unqualified names mean for the user, in order: new tables go into the
    /// first.
    schemas: Vec<String>,
    notices: Notices,
    what: &'a Initialize,
    /// `server_version_num`.
    server: u32,
    err: &'a mut (dyn Write + Send),
    stop: &'a AtomicBool,
}

/// Performs the steps of `what`.
pub(crate) fn initialize(
    connected: Connected,
    what: &Initialize,
    err: &mut (dyn Write + Send),
    stop: &AtomicBool,
) -> Result<(), Stopped> {
    let Connected { client, notices, schemas, .. } = connected;
    let server = server_version(&client);
    let token = client.cancel_token();
    let done = AtomicBool::new(false);
    let made = std::thread::scope(|scope| {
        // A statement of the server's can take minutes; a signal is to end it now.
        let watcher = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
                std::thread::park_timeout(WATCH);
            }
            if !done.load(Ordering::Relaxed) {
                // Where it fails, the statement ends by itself.
                let _ = token.cancel_query();
            }
        });
        let made = Work { client, schemas, notices, what, server, err, stop }.all();
        done.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        made
    });
    match made {
        Err(_) if stop.load(Ordering::Relaxed) => Err(Stopped::Interrupted),
        made => made,
    }
}

impl Work<'_> {
    fn all(&mut self) -> Result<(), Stopped> {
        let began = Instant::now();
        let mut spent = Vec::new();
        for step in &self.what.steps {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Stopped::Interrupted);
            }
            let start = Instant::now();
            let name = match step {
                'd' => self.drop_tables()?,
                't' => self.create_tables()?,
                'g' => self.generate_here()?,
                'G' => self.generate_there()?,
                'v' => self.vacuum()?,
                'p' => self.primary_keys()?,
                'f' => self.foreign_keys()?,
                _ => unreachable!("the options allow no other step"),
            };
            spent.push(format!("{name} {:.2} s", start.elapsed().as_secs_f64()));
        }
        self.say(&format!(
            "done in {:.2} s ({}).",
            began.elapsed().as_secs_f64(),
            spent.join(", ")
        ));
        Ok(())
    }

    fn say(&mut self, line: &str) {
        let _ = writeln!(self.err, "{line}");
    }

    fn execute(&mut self, statement: &str) -> Result<(), UsageError> {
        let executed = self.client.batch_execute(statement);
        self.notices.relay(self.err);
        executed.map_err(|e| failed(&e, statement))
    }

    /// Executes a statement that no transaction may hold.
    fn execute_alone(&mut self, statement: &str) -> Result<(), UsageError> {
        let executed = self.client.execute_alone(statement);
        self.notices.relay(self.err);
        executed.map_err(|e| failed(&e, statement))
    }

    /// Returns the present names of the tables.
    fn names(&mut self) -> Result<Names, UsageError> {
        Names::look(&mut self.client, &self.schemas)
    }

    /// Returns the qualified name of a new table.
    fn new_name(&self, table: &str) -> Result<String, UsageError> {
        let schema = self.schemas.first().ok_or_else(|| {
            UsageError::new(
                "query failed: ERROR:  no schema has been selected to create in".to_owned(),
            )
        })?;
        Ok(qualified(schema, table))
    }

    fn drop_tables(&mut self) -> Result<&'static str, UsageError> {
        self.say("dropping old tables...");
        let names = self.names()?;
        self.execute(&format!("drop table if exists {}", names.all()))?;
        Ok("drop tables")
    }

    fn create_tables(&mut self) -> Result<&'static str, UsageError> {
        self.say("creating tables...");
        let aid = if self.what.scale >= BIG_SCALE { "bigint" } else { "int" };
        for (table, columns, filled) in COLUMNS {
            let columns = columns.replace("{aid}", aid);
            let partitioned = table == "pgbench_accounts" && self.what.partitions > 0;
            // From PostgreSQL 18 on a partitioned table cannot be unlogged; its partitions can. And
            // the tables that a foreign key joins are all permanent or all unlogged: pgbench 18
            // leaves the others permanent too.
            let partitions_alone = self.what.dialect.unlogs_partitions_alone();
            let unlogged = self.what.unlogged && !(self.what.partitions > 0 && partitions_alone);
            let name = self.new_name(table)?;
            let mut statement = format!(
                "create{} table {name} ({columns})",
                if unlogged { " unlogged" } else { "" }
            );
            if partitioned {
                let method = match self.what.partition_method {
                    PartitionMethod::Range => "range",
                    PartitionMethod::Hash => "hash",
                };
                statement.push_str(&format!(" partition by {method} (aid)"));
            } else if filled {
                statement.push_str(&format!(" with (fillfactor={})", self.what.fillfactor));
            }
            statement.push_str(&self.in_tablespace());
            self.execute(&statement)?;
        }
        if self.what.partitions > 0 {
            self.create_partitions()?;
        }
        Ok("create tables")
    }

    fn in_tablespace(&self) -> String {
        self.what
            .tablespace
            .as_deref()
            .map_or_else(String::new, |t| format!(" tablespace {}", escape_identifier(t)))
    }

    fn create_partitions(&mut self) -> Result<(), UsageError> {
        let (number, unlogged) =
            (self.what.partitions, if self.what.unlogged { " unlogged" } else { "" });
        self.say(&format!("creating {number} partitions..."));
        let size = (ACCOUNTS * u64::from(self.what.scale)).div_ceil(u64::from(number));
        let accounts = self.names()?.spelled("pgbench_accounts");
        for n in 1..=number {
            let values = match self.what.partition_method {
                PartitionMethod::Range => {
                    let edge = |after: u32, beyond: &str| match after {
                        0 => beyond.to_owned(),
                        n if n == number => beyond.to_owned(),
                        n => (u64::from(n) * size + 1).to_string(),
                    };
                    format!("from ({}) to ({})", edge(n - 1, "minvalue"), edge(n, "maxvalue"))
                }
                PartitionMethod::Hash => format!("with (modulus {number}, remainder {})", n - 1),
            };
            let name = self.new_name(&format!("pgbench_accounts_{n}"))?;
            let statement = format!(
                "create{unlogged} table {name} partition of {accounts} for values {values} \
                 with (fillfactor={}){}",
                self.what.fillfactor,
                self.in_tablespace()
            );
            self.execute(&statement)?;
        }
        Ok(())
    }

    /// Everything is filled in one transaction, from empty.
    fn begin_filling(&mut self) -> Result<Names, UsageError> {
        let names = self.names()?;
        self.client.begin().map_err(|e| failed(&e, "begin"))?;
        self.execute(&format!("truncate table {}", names.all()))?;
        Ok(names)
    }

    fn commit(&mut self) -> Result<(), UsageError> {
        self.client.commit().map_err(|e| failed(&e, "commit"))
    }

    fn generate_here(&mut self) -> Result<&'static str, Stopped> {
        self.say("generating data (client-side)...");
        let names = self.begin_filling()?;
        for filling in &FILLED {
            self.copy(&names, filling)?;
        }
        self.commit()?;
        Ok("client-side generate")
    }

    /// Fills a table by COPY. Progress is shown for accounts alone.
    fn copy(&mut self, names: &Names, filling: &Filling) -> Result<(), Stopped> {
        let Filling { table, columns, write, .. } = *filling;
        let rows = u64::from(self.what.scale) * filling.rows_per_scale;
        // Frozen rows need no second write later. Partitioned tables do not take them.
        let name = names.spelled(table);
        let freeze =
            if self.server >= 140_000 && self.is_plain(&name)? { " with (freeze on)" } else { "" };
        let statement = format!("copy {name} ({columns}) from stdin{freeze}");
        let mut copy = self.client.copy_in(&statement).map_err(|e| failed(&e, &statement))?;
        let began = Instant::now();
        let mut lines = Lines { began, rows, table, what: self.what, longest: 0, next: QUIET };
        let mut chunk = Vec::with_capacity(1 << 16);
        let mut row = 1;
        while row <= rows {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Stopped::Interrupted);
            }
            chunk.clear();
            let until = (row + ROWS_PER_CHUNK).min(rows + 1);
            for row in row..until {
                // Writing to a Vec cannot fail.
                let _ = write(row, &mut chunk);
            }
            row = until;
            copy.write_all(&chunk)
                .map_err(|e| UsageError::new(format!("could not write rows to {table}: {e}")))?;
            if table == "pgbench_accounts"
                && let Some(line) = lines.after(row - 1)
            {
                let _ = self.err.write_all(line.as_bytes());
            }
        }
        let _ = self.err.write_all(lines.end().as_bytes());
        copy.finish().map_err(|e| failed(&e, &statement))?;
        Ok(())
    }

    /// Whether `name` is a table that is not partitioned.
    fn is_plain(&mut self, name: &str) -> Result<bool, UsageError> {
        let name = escape_literal(name);
        let query = format!(
            "select relkind::text = 'r' from pg_catalog.pg_class where oid = {name}::regclass"
        );
        let row = self.client.query_one(query.as_str(), &[]).map_err(|e| failed(&e, &query))?;
        Ok(row.get(0))
    }

    fn generate_there(&mut self) -> Result<&'static str, UsageError> {
        self.say("generating data (server-side)...");
        let names = self.begin_filling()?;
        for Filling { table, columns, rows_per_scale, values, .. } in &FILLED {
            let rows = u64::from(self.what.scale) * rows_per_scale;
            self.execute(&format!(
                "insert into {} ({columns}) select {values} from pg_catalog.generate_series(1, \
                 {rows}) as n",
                names.spelled(table)
            ))?;
        }
        self.commit()?;
        Ok("server-side generate")
    }

    fn vacuum(&mut self) -> Result<&'static str, UsageError> {
        self.say("vacuuming...");
        let names = self.names()?;
        for table in ["pgbench_branches", "pgbench_tellers", "pgbench_accounts", "pgbench_history"]
        {
            self.execute_alone(&format!("vacuum analyze {}", names.spelled(table)))?;
        }
        Ok("vacuum")
    }

    fn primary_keys(&mut self) -> Result<&'static str, UsageError> {
        self.say("creating primary keys...");
        let names = self.names()?;
        let index = self.what.index_tablespace.as_deref().map_or_else(String::new, |t| {
            format!(" using index tablespace {}", escape_identifier(t))
        });
        for (table, column) in
            [("pgbench_branches", "bid"), ("pgbench_tellers", "tid"), ("pgbench_accounts", "aid")]
        {
            let name = names.spelled(table);
            self.execute(&format!("alter table {name} add primary key ({column}){index}"))?;
        }
        Ok("primary keys")
    }

    fn foreign_keys(&mut self) -> Result<&'static str, UsageError> {
        self.say("creating foreign keys...");
        let names = self.names()?;
        for (table, column, other) in [
            ("pgbench_tellers", "bid", "pgbench_branches"),
            ("pgbench_accounts", "bid", "pgbench_branches"),
            ("pgbench_history", "bid", "pgbench_branches"),
            ("pgbench_history", "tid", "pgbench_tellers"),
            ("pgbench_history", "aid", "pgbench_accounts"),
        ] {
            let (name, other) = (names.spelled(table), names.spelled(other));
            self.execute(&format!(
                "alter table {name} add constraint {table}_{column}_fkey foreign key ({column}) \
                 references {other}"
            ))?;
        }
        Ok("foreign keys")
    }
}

/// Progress lines while rows are sent.
struct Lines<'a> {
    began: Instant,
    rows: u64,
    table: &'a str,
    what: &'a Initialize,
    /// The longest line so far, where each stands in the place of the one before.
    longest: usize,
    next: Duration,
}

impl Lines<'_> {
    /// The line to be shown after row number `done`, if one is due.
    fn after(&mut self, done: u64) -> Option<String> {
        let elapsed = self.began.elapsed();
        let due =
            if self.what.quiet { elapsed >= self.next } else { done.is_multiple_of(ROWS_PER_LINE) };
        if !due && done != self.rows {
            return None;
        }
        while self.next <= elapsed {
            self.next += QUIET;
        }
        let elapsed = elapsed.as_secs_f64();
        let remaining = elapsed * (self.rows - done) as f64 / done as f64;
        let percent = done * 100 / self.rows;
        let of_table = match self.what.dialect.names_table_in_progress() {
            true => format!(" of {}", self.table),
            false => String::new(),
        };
        let line = format!(
            "{done} of {} tuples ({percent}%){of_table} done (elapsed {elapsed:.2} s, remaining \
             {remaining:.2} s)",
            self.rows
        );
        if !self.what.on_terminal {
            return Some(line + "\n");
        }
        self.longest = self.longest.max(line.len());
        Some(format!("{line:width$}\r", width = self.longest))
    }

    /// Returns the text that clears the last progress line.
    fn end(&self) -> String {
        match self.longest {
            0 => String::new(),
            longest => format!("{:longest$}\r", ""),
        }
    }
}
