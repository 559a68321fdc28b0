//! Bulk loads into a real server: equal rows with every strategy, an interrupted load that goes on,
//! no tables of others touched.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pgdyno_lab::load::{ConnectOptions, Existing, Load, Loaded, load};
use pgdyno_model::experiment::Loading;
use pgdyno_model::load_strategy::LoadStrategy;
use pgdyno_model::progress::{Event, Notice, Progress, Silent};
use pgdyno_model::target::Address;
use pgdyno_postgres::Cluster;
use pgdyno_provision::BenchError;
use pgdyno_test_support::{create_cluster as made, install};

static GO_ON: AtomicBool = AtomicBool::new(false);

/// A server with nothing in it.
struct Empty {
    cluster: Cluster,
    home: pgdyno_test_support::Scratch,
}

impl Empty {
    fn start() -> Self {
        let (mut cluster, home) = made(install(None));
        cluster.start(&GO_ON).unwrap();
        Self { cluster, home }
    }

    /// Returns a load of `workload` into `database`, which it makes first.
    fn load_of(&self, workload: &str, database: &str) -> Load {
        let is_there = format!("SELECT count(*) FROM pg_database WHERE datname = '{database}'");
        if self.ask("postgres", &is_there) == "0" {
            self.execute("postgres", &format!("CREATE DATABASE {database}"));
        }
        let target = self.cluster.control_target("postgres");
        let Address::Unix { directory, port } = target.address else { panic!("a socket") };
        Load {
            workload: workload.to_owned(),
            scale: NonZeroU32::new(2).unwrap(),
            seed: 7,
            loading: Loading {
                filler_compress_percentage: 50,
                jobs: NonZeroU32::new(1),
                ..Loading::default()
            },
            strategy: None,
            chunk: NonZeroU64::new(30_000),
            existing: Existing::Keep,
            connect: ConnectOptions {
                dsn_or_dbname: Some(database.to_owned()),
                host: Some(directory.display().to_string()),
                port: Some(port.to_string()),
                user: Some(target.user),
                ..ConnectOptions::default()
            },
        }
    }

    fn ask(&self, database: &str, sql: &str) -> String {
        let answers = self.cluster.control(database).unwrap().simple_query(sql).unwrap();
        let row = answers.iter().find_map(|answer| match answer {
            postgres::SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
            _ => None,
        });
        row.unwrap()
    }

    fn execute(&self, database: &str, sql: &str) {
        self.cluster.control(database).unwrap().batch_execute(sql).unwrap();
    }

    /// Returns a checksum of all values in pgbench's tables, which does not depend on the order of
    /// rows.
    fn checksum(&self, database: &str) -> String {
        let tables = ["pgbench_accounts", "pgbench_tellers", "pgbench_branches"];
        let sum = |t: &str| {
            format!(
                "SELECT count(*) || ' ' || sum(hashtextextended(t::text, 0)::numeric) FROM {t} t"
            )
        };
        tables.map(|t| self.ask(database, &sum(t))).join(", ")
    }

    /// Returns every valid primary key of pgbench's tables, with its table.
    fn keys(&self, database: &str) -> String {
        self.ask(
            database,
            "SELECT string_agg(i.indrelid::regclass || ' ' || pg_get_constraintdef(c.oid), ', ' \
             ORDER BY i.indrelid::regclass::text) \
             FROM pg_index i JOIN pg_constraint c ON c.conindid = i.indexrelid \
             JOIN pg_class r ON r.oid = i.indrelid \
             WHERE i.indisprimary AND i.indisvalid AND r.relname LIKE 'pgbench%' \
             AND NOT r.relispartition",
        )
    }

    /// Returns the number of account pages that hold rows and are not marked all-visible. Pages
    /// without rows do not count: connections that fill a table side by side may leave some at its
    /// end.
    fn pages_to_vacuum(&self, database: &str) -> String {
        self.execute(database, "CREATE EXTENSION pg_visibility");
        self.ask(
            database,
            "SELECT count(*) FROM pg_class c, pg_visibility_map(c.oid) v \
             WHERE c.relname LIKE 'pgbench_accounts%' AND c.relkind = 'r' AND NOT v.all_visible \
             AND EXISTS (SELECT FROM pgbench_accounts a WHERE a.tableoid = c.oid \
             AND (a.ctid::text::point)[0] = v.blkno)",
        )
    }

    fn assert_no_trace(&self, database: &str) {
        let traces =
            self.ask(database, "SELECT count(*) FROM pg_class WHERE relname LIKE 'pgdyno%'");
        assert_eq!(traces, "0", "pgdyno's own tables go at the end");
    }
}

/// Stops the load once a number of rows is sent, and keeps the notes.
struct StopAt<'a> {
    rows: u64,
    stop: &'a AtomicBool,
    notes: Mutex<Vec<Notice>>,
}

impl Progress for StopAt<'_> {
    fn event(&self, event: &Event) {
        match event {
            Event::Loading { rows, .. } if *rows >= self.rows => {
                self.stop.store(true, Ordering::Relaxed);
            }
            Event::Note(note) => self.notes.lock().unwrap().push(note.clone()),
            _ => {}
        }
    }
}

fn quietly(load_it: &Load) -> Result<Loaded, BenchError> {
    load(load_it, &Silent, &GO_ON)
}

fn words(error: &BenchError) -> String {
    format!("{error}\nhelp: {}", error.help().unwrap_or_default())
}

#[test]
fn the_rows_are_the_same_whatever_the_way_they_are_loaded() {
    let server = Empty::start();
    let plain = server.load_of("tpcb-like", "plain");
    let loaded = quietly(&plain).unwrap();
    assert_eq!(
        (loaded.rows, loaded.what.as_str()),
        (200_022, "tpcb-like at scale 2, seed 7, filler 50% blanks")
    );
    let (rows, keys) = (server.checksum("plain"), server.keys("plain"));
    assert_eq!(
        keys,
        "pgbench_accounts PRIMARY KEY (aid), pgbench_branches PRIMARY KEY (bid), \
         pgbench_tellers PRIMARY KEY (tid)"
    );
    let filler =
        "SELECT min(length(rtrim(filler))) || ' ' || count(DISTINCT filler) FROM pgbench_accounts";
    assert_eq!(server.ask("plain", filler), "42 200000");
    assert_eq!(server.pages_to_vacuum("plain"), "0", "VACUUM has nothing left to do");

    let three = NonZeroU32::new(3);
    let mut chunks = server.load_of("tpcb-like", "chunks");
    (chunks.loading.jobs, chunks.strategy) = (three, Some(LoadStrategy::Chunks));
    quietly(&chunks).unwrap();
    assert_eq!((server.checksum("chunks"), server.keys("chunks")), (rows.clone(), keys.clone()));
    assert_eq!(server.pages_to_vacuum("chunks"), "0");

    let mut parts = server.load_of("tpcb-like", "parts");
    (parts.loading.jobs, parts.loading.partitions) = (three, 3);
    quietly(&parts).unwrap();
    assert_eq!((server.checksum("parts"), server.keys("parts")), (rows.clone(), keys));
    assert_eq!(server.pages_to_vacuum("parts"), "0");
    let bounds = "SELECT string_agg(pg_get_expr(relpartbound, oid) || ' ' || \
                  array_to_string(reloptions, ','), '; ' ORDER BY relname) \
                  FROM pg_class WHERE relispartition AND relkind = 'r'";
    assert_eq!(
        server.ask("parts", bounds),
        "FOR VALUES FROM (MINVALUE) TO (66668) fillfactor=100; \
         FOR VALUES FROM (66668) TO (133335) fillfactor=100; \
         FOR VALUES FROM (133335) TO (MAXVALUE) fillfactor=100"
    );
    assert_eq!(
        server.ask(
            "parts",
            "SELECT count(*) FROM pg_constraint WHERE contype = 'c' AND conrelid <> 0"
        ),
        "0"
    );

    let mut other = server.load_of("tpcb-like", "other");
    other.seed = 8;
    quietly(&other).unwrap();
    assert_ne!(server.checksum("other"), rows, "another seed draws other filler");
    for database in ["plain", "chunks", "parts", "other"] {
        server.assert_no_trace(database);
    }
}

#[test]
fn what_is_alike_in_every_row_is_there_however_it_was_filled_in() {
    let server = Empty::start();
    let mut one = server.load_of("tpcb-like", "one");
    let mut chunks = server.load_of("tpcb-like", "chunks");
    let mut parts = server.load_of("tpcb-like", "parts");
    for it in [&mut one, &mut chunks, &mut parts] {
        it.loading.filler_compress_percentage = 100;
        it.loading.jobs = NonZeroU32::new(2);
    }
    chunks.strategy = Some(LoadStrategy::Chunks);
    parts.loading.partitions = 2;
    let bytes = [&one, &chunks, &parts].map(|it| quietly(it).unwrap().bytes);
    assert!(bytes[0] < bytes[1], "chunks send it, one COPY has the server add it: {bytes:?}");
    let rows = server.checksum("one");
    let blanks = "SELECT string_agg(DISTINCT abalance || ' ' || octet_length(filler), ', ') \
                  FROM pgbench_accounts";
    for database in ["one", "chunks", "parts"] {
        assert_eq!(server.checksum(database), rows, "{database}");
        assert_eq!(server.ask(database, blanks), "0 84", "{database}");
        let defaults = "SELECT count(*) FROM pg_attrdef";
        assert_eq!(server.ask(database, defaults), "0", "no default stays in {database}");
    }
    // ANALYZE has looked at the whole and at each partition.
    let looked = "SELECT string_agg(tablename || ' ' || n, ', ' ORDER BY tablename) \
                  FROM (SELECT tablename, count(*) n \
                  FROM pg_stats WHERE tablename LIKE 'pgbench_accounts%' GROUP BY 1) s";
    assert_eq!(
        server.ask("parts", looked),
        "pgbench_accounts 4, pgbench_accounts_1 4, pgbench_accounts_2 4"
    );
}

#[test]
#[ignore = "long: large tables, loaded in parts"]
fn an_interrupted_load_goes_on_from_its_last_chunk() {
    let server = Empty::start();
    quietly(&server.load_of("tpcb-like", "whole")).unwrap();
    for (database, strategy, partitions) in
        [("cut", Some(LoadStrategy::Chunks), 0), ("cut_parts", None, 9)]
    {
        let mut cut = server.load_of("tpcb-like", database);
        (cut.loading.jobs, cut.loading.partitions) = (NonZeroU32::new(2), partitions);
        (cut.strategy, cut.chunk) = (strategy, NonZeroU64::new(20_000));
        let stop = AtomicBool::new(false);
        let progress = StopAt { rows: 60_000, stop: &stop, notes: Mutex::default() };
        assert!(matches!(load(&cut, &progress, &stop), Err(BenchError::Interrupted)), "{database}");
        let pieces: u64 = server.ask(database, "SELECT count(*) FROM pgdyno_load").parse().unwrap();
        assert!(pieces > 0, "what was loaded is noted");

        // Another load does not go on with it, and does not harm it.
        let other = Load { seed: 9, ..cut.clone() };
        let refused = words(&quietly(&other).unwrap_err());
        assert!(refused.contains("was begun here and not ended"), "{refused}");

        let never = AtomicBool::new(false);
        let progress = StopAt { rows: u64::MAX, stop: &never, notes: Mutex::default() };
        let rest = load(&cut, &progress, &never).unwrap();
        assert!(rest.rows < 200_022, "{database}: {} rows were sent again", rest.rows);
        let notes = progress.notes.into_inner().unwrap();
        let pieces = usize::try_from(pieces).unwrap();
        let expected = Notice::LoadContinues { data: rest.what.clone(), pieces };
        assert!(notes.contains(&expected), "{notes:?}");
        assert_eq!(server.checksum(database), server.checksum("whole"));
        assert_eq!(server.keys(database), server.keys("whole"));
        server.assert_no_trace(database);
    }
}

#[test]
fn tables_of_others_stay_and_ours_go_only_when_asked() {
    let server = Empty::start();
    let mut one = server.load_of("tpcb-like", "one");
    one.scale = NonZeroU32::MIN;
    server.execute(
        "one",
        "CREATE TABLE pgbench_tellers (name text); INSERT INTO pgbench_tellers VALUES ('theirs')",
    );
    one.existing = Existing::ReplaceOurs;
    let refused = words(&quietly(&one).unwrap_err());
    assert!(
        refused.starts_with(
            "cannot make table `pgbench_tellers`: it is there already, not made by pgdyno, \
             with 16 kB and the columns name text\nhelp: "
        ),
        "{refused}"
    );
    assert_eq!(server.ask("one", "SELECT name FROM pgbench_tellers"), "theirs");
    assert_eq!(
        server.ask("one", "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"),
        "1"
    );

    server.execute("one", "DROP TABLE pgbench_tellers");
    quietly(&one).unwrap();
    one.existing = Existing::Keep;
    let refused = words(&quietly(&one).unwrap_err());
    assert!(refused.contains("made by pgdyno") && refused.contains("--replace"), "{refused}");
    one.existing = Existing::ReplaceOurs;
    (one.scale, one.loading.partitions) = (NonZeroU32::new(2).unwrap(), 2);
    quietly(&one).unwrap();
    assert_eq!(server.ask("one", "SELECT count(*) FROM pgbench_accounts"), "200000");

    // One that somebody cut short and that is not wanted any more.
    let mut cut = Load { existing: Existing::ReplaceOurs, ..server.load_of("tpcb-like", "one") };
    (cut.loading.partitions, cut.scale) = (5, NonZeroU32::new(3).unwrap());
    let stop = AtomicBool::new(false);
    let progress = StopAt { rows: 100_000, stop: &stop, notes: Mutex::default() };
    assert!(matches!(load(&cut, &progress, &stop), Err(BenchError::Interrupted)));
    quietly(&one).unwrap();
    assert_eq!(server.ask("one", "SELECT count(*) FROM pgbench_accounts"), "200000");
    server.assert_no_trace("one");
}

/// A partitioned table that an extension's function is told of, as of a table to distribute.
const ENGINES: [(&str, &str); 4] = [
    (
        "workload.toml",
        "description = \"parts\"\n[data]\nschema = \"s.sql\"\nafter_schema = \"a.sql\"\n\
         [[data.table]]\nname = \"measured\"\nrows_per_scale = 50_000\nprimary_key = [\"id\"]\n\
         columns = [{ name = \"id\", row_number = true }, { name = \"of\", constant = \"x\" }]\n\
         [[script]]\nfile = \"q.sql\"\n",
    ),
    ("s.sql", "CREATE TABLE measured (id bigint NOT NULL, of text) PARTITION BY RANGE (id);\n"),
    (
        "a.sql",
        "CREATE TABLE measured_1 PARTITION OF measured FOR VALUES FROM (1) TO (60001);\n\
         CREATE TABLE measured_2 PARTITION OF measured FOR VALUES FROM (60001) TO (100001);\n\
         SELECT create_distributed_table('measured', 'id');\n",
    ),
    ("q.sql", "SELECT count(*) FROM measured;\n"),
];

#[test]
fn tables_of_other_engines_are_made_before_their_rows_come() {
    let server = Empty::start();
    let folder = server.home.path().join("engines");
    std::fs::create_dir(&folder).unwrap();
    for (file, text) in ENGINES {
        std::fs::write(folder.join(file), text).unwrap();
    }
    let mut load_it = server.load_of(&format!("{}/", folder.display()), "engines");
    // Stands in for an extension: it records what it was told, and how many rows there were.
    server.execute(
        "engines",
        "CREATE TABLE told (of text, by text, rows bigint); \
         CREATE FUNCTION create_distributed_table(text, text) RETURNS void LANGUAGE plpgsql AS \
         'BEGIN INSERT INTO told SELECT $1, $2, count(*) FROM measured; END'",
    );
    quietly(&load_it).unwrap();
    let told = "SELECT string_agg(concat_ws(' ', of, by, rows), ', ') FROM told";
    let parts = "SELECT string_agg(n, ' ') FROM (SELECT tableoid::regclass || '=' || count(*) AS n \
        FROM measured GROUP BY tableoid ORDER BY 1) AS p";
    assert_eq!(server.ask("engines", told), "measured id 0");
    assert_eq!(server.ask("engines", parts), "measured_1=60000 measured_2=40000");
    let keys = "SELECT count(*) FROM pg_constraint WHERE contype = 'p' \
        AND conrelid::regclass::text LIKE 'measured%'";
    assert_eq!(server.ask("engines", keys), "3");

    load_it.existing = Existing::ReplaceOurs;
    quietly(&load_it).unwrap();
    assert_eq!(server.ask("engines", told), "measured id 0, measured id 0");
    assert_eq!(server.ask("engines", parts), "measured_1=60000 measured_2=40000");
    load_it.strategy = Some(LoadStrategy::Freeze);
    let refused = words(&quietly(&load_it).unwrap_err());
    assert!(refused.contains("by COPY with FREEZE: its `after_schema` says"), "{refused}");
    server.assert_no_trace("engines");
}

/// Tables of which one has children in another, and one whose rows do not grow.
const FAMILIES: &str = "[[data.table]]\nname = \"orders\"\nrows_per_scale = 500\ncolumns = [\n\
    { name = \"id\", row_number = true }, { name = \"lines\", children = [5, 15] },\n\
    { name = \"carrier\", first = { rows = 70, of = 100, value = { uniform = [1, 10] } } },\n\
    { name = \"zip\", digits = { count = 4, after = \"11111\" } } ]\n\
    [[data.table]]\nname = \"lines\"\nchildren_of = { table = \"orders\", each = [5, 15] }\n\
    primary_key = [\"order_id\", \"number\"]\ncolumns = [\n\
    { name = \"order_id\", of_parent = { row_number = true } },\n\
    { name = \"number\", child_number = true },\n\
    { name = \"delivered\", first = { rows = 70, of = 100, parents = true, \
    value = { constant = \"2013-04-11\" } } },\n\
    { name = \"name\", spelled = { digits = 2, number = { counter = { cycle = 100, from = 0 } }, \
    words = [\"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\", \"h\", \"i\", \"j\"] } },\n\
    { name = \"supplier\", non_uniform = { mask = 255, from = 1, to = 1000 } } ]\n\
    [[data.table]]\nname = \"items\"\nrows = 1000\ncolumns = [\n\
    { name = \"id\", row_number = true },\n\
    { name = \"data\", letters = [26, 50], within = { text = \"ORIGINAL\", share = 0.1 } } ]\n\
    [[data.table]]\nname = \"documents\"\nrows = 1000\ncolumns = [\n\
    { name = \"key\", row_number = true },\n\
    { name = \"day\", timestamp = { from = \"1999-12-30\", every = \"12h\" } },\n\
    { name = \"born\", timestamp = { from = \"1990-01-01\", to = \"1999-12-31\" } },\n\
    { name = \"seen\", timestamp = { from = \"2026-01-01 00:00+00\", \
    to = \"2026-01-02 00:00+00\" } },\n\
    { name = \"item\", references = \"items\" },\n\
    { name = \"tags\", array = { length = [0, 5], of = { letters = [1, 9], null = 0.2 } } },\n\
    { name = \"days\", array = { length = [2, 2], \
    of = { choice = [\"2026-01-01\", \"2026-06-01\"] } } },\n\
    { name = \"body\", null = 0.1, json = [ { name = \"it's \\\"a\\\"\", row_number = true },\n\
      { name = \"price\", decimal = { from = 0, to = 2, digits = 2 }, null = 0.2 },\n\
      { name = \"of\", json = [ { name = \"kind\", choice = [\"a\\nb\", \"c\"] },\n\
      { name = \"x\", letters = [0, 3] } ] },\n\
      { name = \"none\", json = [] } ] },\n\
    { name = \"plain\", json = [ { name = \"n\", uniform = [-5, 5] } ] } ]\n";

/// Makes a workload with columns of many types in `folder`.
fn many_types(folder: &Path, uniform: &str) -> String {
    let schema = "CREATE TABLE things (id bigint, kind smallint, name text, qq numeric, born date, \
                  at timestamptz, seen timestamp(0), pad varchar(20), untold int DEFAULT 5, \
                  note text DEFAULT 'mine', mark varchar(20), \
                  credit char(2), tax numeric(4,4), amount numeric(12,2), district smallint, \
                  shuffled int, carrier int, label text); \
                  CREATE TABLE orders (id int, lines int, carrier int, zip char(9)); \
                  CREATE TABLE lines (order_id int, number int, delivered timestamptz, \
                  name text, supplier int); CREATE TABLE items (id int, data text); \
                  CREATE TABLE documents (key uuid, day date, born date, seen timestamptz, \
                  item bigint, tags varchar(9)[], days date[], body jsonb, plain json);";
    let toml = format!(
        "description = \"types\"\n[data]\nschema = \"schema.sql\"\nbytes_per_scale = 1000\n\
         [[data.table]]\nname = \"things\"\nrows_per_scale = 500\nprimary_key = [\"id\"]\n\
         tidy = \"analyze\"\ncolumns = [\n\
         {{ name = \"id\", row_number = true }}, {{ name = \"kind\", uniform = {uniform} }},\n\
         {{ name = \"name\", text = \"user {{row}}, hello\" }}, \
         {{ name = \"qq\", constant = \"276732431\" }},\n\
         {{ name = \"born\", constant = \"1970-01-01\" }},\n\
         {{ name = \"at\", timestamp = {{ from = \"2013-04-11 15:13:55+00\", \
         every = \"1m\" }} }},\n\
         {{ name = \"seen\", constant = \"2013-04-11 15:13:55\" }}, \
         {{ name = \"pad\", filler = 20 }},\n\
         {{ name = \"note\", constant = \"ours\" }}, \
         {{ name = \"mark\", constant = \"it's a \\\\ mark\" }},\n\
         {{ name = \"credit\", choice = [\"GC\", \"BC\"], weights = [9, 1] }},\n\
         {{ name = \"tax\", decimal = {{ from = 0, to = 0.2, digits = 4 }} }},\n\
         {{ name = \"amount\", decimal = {{ from = 123456.78, to = 123456.78, digits = 2 }} }},\n\
         {{ name = \"district\", counter = {{ every = 10, cycle = 5, from = 7 }} }},\n\
         {{ name = \"shuffled\", permutation = 50 }},\n\
         {{ name = \"carrier\", uniform = [1, 10], null = 0.3 }},\n\
         {{ name = \"label\", letters = [8, 16] }} ]\n\
         {FAMILIES}\
         [[script]]\nfile = \"s.sql\"\n"
    );
    for (name, text) in
        [("workload.toml", toml.as_str()), ("schema.sql", schema), ("s.sql", "SELECT 1;\n")]
    {
        std::fs::write(folder.join(name), text).unwrap();
    }
    folder.display().to_string()
}

#[test]
fn every_generator_fills_the_types_it_can_and_says_which_it_cannot() {
    let server = Empty::start();
    let folder = many_types(server.home.path(), "[3, 7]");
    let things = server.load_of(&folder, "types");
    quietly(&things).unwrap();
    let row = "SELECT t::text FROM (SELECT id, name, qq, born, at AT TIME ZONE 'UTC', seen, \
               length(pad), untold, note, mark FROM things) t WHERE id = 61";
    assert_eq!(
        server.ask("types", row),
        "(61,\"user 61, hello\",276732431,1970-01-01,\"2013-04-11 16:13:55\",\
         \"2013-04-11 15:13:55\",20,5,ours,\"it's a \\\\ mark\")"
    );
    let defaults = "SELECT string_agg(attname || ' ' || pg_get_expr(adbin, adrelid), ', ' \
                    ORDER BY adnum) \
                    FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum";
    assert_eq!(
        server.ask("types", defaults),
        "untold 5, note 'mine'::text",
        "those of the schema, and no other"
    );
    assert_eq!(
        server.ask(
            "types",
            "SELECT min(kind) || ' ' || max(kind) || ' ' || count(DISTINCT kind) FROM things"
        ),
        "3 7 5"
    );

    let drawn = "SELECT concat_ws(' ', avg((credit = 'BC')::int) BETWEEN 0.05 AND 0.15, \
                 bool_and(credit IN ('GC', 'BC')), min(tax) >= 0 AND max(tax) <= 0.2, \
                 count(DISTINCT tax) > 400, min(amount), max(amount), min(district), \
                 max(district), avg((carrier IS NULL)::int) BETWEEN 0.22 AND 0.38, \
                 min(carrier), max(carrier), min(length(label)), max(length(label))) FROM things";
    assert_eq!(server.ask("types", drawn), "t t t t 123456.78 123456.78 7 11 t 1 10 8 16");
    let blocks = "SELECT string_agg(DISTINCT sum::text, ' ') FROM (SELECT sum(shuffled), \
                  count(DISTINCT shuffled) FROM things GROUP BY (id - 1) / 50) b \
                  WHERE count = 50";
    assert_eq!(server.ask("types", blocks), "1275", "1 to 50, each once");
    let families = "SELECT concat_ws(' ', (SELECT count(*) FROM orders), min(o.lines), \
                    max(o.lines), bool_and(o.lines = l.count AND l.max = l.count AND l.min = 1), \
                    bool_and((o.carrier IS NULL) = ((o.id - 1) % 100 >= 70)), \
                    bool_and(l.delivered = CASE WHEN o.carrier IS NULL THEN 0 ELSE l.count END), \
                    bool_and(zip ~ '^[0-9]{4}11111$')) FROM orders o JOIN (SELECT order_id, \
                    count(*), max(number), min(number), count(delivered) AS delivered \
                    FROM lines GROUP BY order_id) l ON o.id = l.order_id";
    assert_eq!(server.ask("types", families), "1000 5 15 t t t t");
    let rest = "SELECT concat_ws(' ', (SELECT count(DISTINCT name) FROM lines), \
                (SELECT min(supplier) >= 1 AND max(supplier) <= 1000 FROM lines), \
                (SELECT count(*) FROM items), \
                (SELECT avg((data LIKE '%ORIGINAL%')::int) BETWEEN 0.05 AND 0.15 FROM items))";
    assert_eq!(server.ask("types", rest), "100 t 1000 t");

    let documents = "SELECT concat_ws(' ', min(day), max(day), min(born) >= '1990-01-01' AND \
        max(born) <= '1999-12-31' AND count(DISTINCT born) > 700, min(seen) >= '2026-01-01Z' AND \
        max(seen) < '2026-01-02Z' AND count(DISTINCT seen) > 990, count(i.id), \
        count(DISTINCT item) > 500, min(cardinality(tags)), max(cardinality(tags)), \
        bool_or(array_position(tags, NULL) > 0), string_agg(DISTINCT days::text, ' '), \
        max(key::text) FILTER (WHERE day = '1999-12-30'), \
        bool_or(key = (reverse(lpad(to_hex(1000::bigint), 16, '0')) || '8000000000000000')::uuid)) \
        FROM documents d LEFT JOIN items i ON i.id = d.item";
    assert_eq!(
        server.ask("types", documents),
        "1999-12-30 2001-05-12 t t 1000 t 0 5 t {2026-01-01,2026-01-01} {2026-01-01,2026-06-01} \
         {2026-06-01,2026-01-01} {2026-06-01,2026-06-01} \
         20000000-0000-0000-8000-000000000000 t"
    );
    let json = "SELECT concat_ws(' ', avg((body IS NULL)::int) BETWEEN 0.06 AND 0.14, \
        sum((body->>'it''s \"a\"')::int) BETWEEN 400000 AND 500000, \
        bool_and(body->>'price' ~ '^[012][.][0-9][0-9]$'), min((body->>'price')::numeric) < 0.1, \
        max((body->>'price')::numeric) BETWEEN 1.9 AND 2, \
        avg((body->'price' = 'null')::int) BETWEEN 0.14 AND 0.26, \
        string_agg(DISTINCT replace(body->'of'->>'kind', chr(10), '|'), ' '), \
        max(length(body->'of'->>'x')), bool_and(body->'none' = '{}'), \
        min((plain->>'n')::int), max((plain->>'n')::int)) FROM documents";
    assert_eq!(server.ask("types", json), "t t t t t t a|b c 3 t -5 5");

    many_types(server.home.path(), "[3, 70000]");
    let refused = words(&quietly(&server.load_of(&folder, "wide")).unwrap_err());
    assert!(
        refused.starts_with(
            "cannot fill column `kind` of `things`: it is to hold 3 to 70000, \
             and its type holds -32768 to 32767"
        ),
        "{refused}"
    );
}
