//! `-i`: pgbench's four tables, their rows and their keys.
//!
//! [`initialize`] performs the steps in their order. `filling` has the rows, `batches` commits them
//! in parts that a lost connection does not take away, `reconnect` replaces that connection, and
//! `progress` has the lines meanwhile.

mod batches;
mod filling;
mod progress;
mod reconnect;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use filling::ACCOUNTS;
use pgdyno_connect::control::{CancelToken, ControlClient};
use pgdyno_model::target::Target;
use postgres_protocol::escape::escape_identifier;

use crate::connection::{Connected, Notices};
use crate::request::{Initialize, PartitionMethod};
use crate::server_messages::{failed, server_version};
use crate::tables::{Names, qualified};
use crate::usage_error::{Stopped, UsageError};

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
/// From this scale on account numbers do not fit into an `int`.
const BIG_SCALE: u32 = 20_000;
/// How often the stop flag is looked at while the server works.
const WATCH: Duration = Duration::from_millis(50);

struct Work<'a> {
    client: ControlClient,
    /// The server of the session.
    target: Target,
    /// Cancels the statement of the present session.
    token: &'a Mutex<CancelToken>,
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
    let Connected { client, target, notices, schemas, .. } = connected;
    let server = server_version(&client);
    let token = &Mutex::new(client.cancel_token());
    let done = AtomicBool::new(false);
    let made = std::thread::scope(|scope| {
        // A statement of the server's can take minutes; a signal is to end it now.
        let watcher = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
                std::thread::park_timeout(WATCH);
            }
            if !done.load(Ordering::Relaxed) {
                let token = token.lock().unwrap_or_else(PoisonError::into_inner).clone();
                // Where it fails, the statement ends by itself.
                let _ = token.cancel_query();
            }
        });
        let made = Work { client, target, token, schemas, notices, what, server, err, stop }.all();
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
