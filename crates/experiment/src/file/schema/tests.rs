use std::path::{Path, PathBuf};

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

use super::generated;
use crate::file::toml_text::render;
use crate::file::{SCHEMA, Source, parse};

#[test]
fn the_committed_schema_is_the_one_that_the_types_give() {
    let generated = generated();
    if std::env::var_os("PGDYNO_SCHEMA_WRITE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/experiment.json");
        std::fs::write(path, &generated).unwrap();
        return;
    }
    // Not the two texts: they are long, and `git diff` shows more.
    assert!(SCHEMA == generated, "the schema is of other types: `just schema` writes it anew");
}

/// A validator that holds the schema, and the schema valid by its meta-schema.
struct Validator {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Validator {
    fn new() -> Self {
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        compiler.add_resource("experiment.json", schema).unwrap();
        let index = compiler.compile("experiment.json", &mut schemas);
        Self { index: index.unwrap_or_else(|e| panic!("{e:#}")), schemas }
    }

    /// Returns what is wrong with `text` by the schema.
    fn judge(&self, text: &str) -> Result<(), String> {
        let table: toml::Table = toml::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let value = serde_json::to_value(table).unwrap();
        self.schemas.validate(&value, self.index).map_err(|e| format!("{e:#}"))
    }
}

fn source(text: &str) -> Source {
    Source { name: "try".into(), shown: "try".into(), text: text.into(), base: "/base".into() }
}

fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

#[test]
fn recipes_and_files_of_earlier_versions_are_valid() {
    let validator = Validator::new();
    let recipes = files("../../experiments", ".toml");
    let earlier = files("tests/fixtures/experiments/0.1.0", ".toml");
    assert!(recipes.len() >= 9 && earlier.len() >= 10, "{recipes:?} {earlier:?}");
    for path in recipes.into_iter().chain(earlier) {
        let text = std::fs::read_to_string(&path).unwrap();
        validator.judge(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    validator.judge(include_str!("../../dry_run/storages.toml")).unwrap();
}

#[test]
fn examples_of_the_docs_are_valid() {
    let validator = Validator::new();
    let mut judged = 0;
    for path in files("../../docs", ".md").into_iter().chain(files("../..", "README.md")) {
        let text = std::fs::read_to_string(&path).unwrap();
        for block in text.split("```toml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            // Other examples are of workloads, or parts that only stand with others.
            if parse(&source(block), &[]).is_ok() {
                validator.judge(block).unwrap_or_else(|e| panic!("{}: {block}{e}", path.display()));
                judged += 1;
            }
        }
    }
    assert!(judged >= 8, "{judged}");
}

#[test]
fn unusual_spellings_that_the_parser_takes_are_valid() {
    let validator = Validator::new();
    for text in [
        "",
        "[load]\nrate = \"500\"\nwarm_up = \"1m30s\"\nduration = \"1.5 hours\"\n",
        "[load]\nreconnect_lost = 3\ndefine = { batch = 10, name = \"x\", flag = true }\n",
        "[load]\nreconnect_lost = \"always\"\n",
        "[load]\nfind = \"max_rate\"\nslo = \"p99 < 20ms\"\n",
        "[factors]\nclients = [\"1\", 8]\npostgres.version = [\"16\", 17]\n\
         fsync = [\"on\", false]\n",
        "[factors]\n\"postgres.version\" = [15]\ndevice.write_cache = [true]\n",
        "[factors]\npg_stat_statements.track = [\"all\", \"none\"]\n",
        "[factors]\nclients = { few = { clients = 1 }, many = { clients = 8, threads = 2 } }\n",
        "[factors]\ncommit = { sync = {}, group = { commit_delay = 10, \
         auto_explain.log_nested_statements = true } }\n",
        "[factors]\nserver = { a = { postgres = { version = 15 } }, b = { \"postgres.version\" = \
         16 } }\n",
        "[factors]\nclients = [1, 2]\n[[exclude]]\nclients = 1\n",
        "[factors]\n\"groups.readers.clients\" = [1, 2]\n",
        "[factors]\ngroups.readers.clients = [1, 2]\ngroups.writers.rate = [10, \"20 for 1m\"]\n",
        "[factors]\ngroups = { few = { clients = 1 }, many = { clients = 8 } }\n",
        "[factors]\nmix = { a = { groups.b = { clients = 2, think_time = \"1s\" } }, b = {} }\n",
        "[groups.readers]\nclients = 8\nrate = [[\"10s\", 5], [\"5s\", 5, 50]]\n\
         [groups.b]\nthink_time = \"40ms\"\npostgres.dsn = \"host=replica\"\n\
         [postgres]\ndsn = \"host=primary\"\n",
        "[postgres]\nversion = \"17\"\n[postgres.settings]\nwork_mem = \"4MB\"\n\
         auto_explain.log_min_duration = 5\n",
        "[experiment]\nprecision = \"2.5 %\"\nbudget = \"30m\"\nmax_repeats = 9\n",
        "[crash]\nfaults = [\"lying-disk\", \"power\"]\nlie = 0.5\n",
        "[storage.d]\nbacking = { ram = \"1 GiB\" }\n",
        "[storage.d]\n\
         backing = { raid0 = [{ loop = { size = \"1GiB\" } }, { loop = { size = \"1GiB\" } }], \
         chunk = \"64KiB\" }\nfilesystem = \"xfs\"\n",
        "[workload]\nname = \"./mine\"\nload_settings = { wal_level = \"minimal\" }\n",
        "[size.large]\nabout = \"more\"\n[size.large.set]\n\"workload.scale\" = 30\n\
         \"factors.clients\" = [1, 2]\n",
    ] {
        parse(&source(text), &[]).unwrap_or_else(|e| panic!("{text}{e}"));
        validator.judge(text).unwrap_or_else(|e| panic!("{text}{e}"));
    }
}

/// Files that the parser refuses for a key, a type, a unit or a word.
const REFUSED: &[&str] = &[
    "[loads]\n",
    "[load]\nduraton = \"5s\"\n",
    "[load]\nduration = 300\n",
    "[load]\nduration = \"300\"\n",
    "[load]\nduration = \"5 parsecs\"\n",
    "[load]\nclients = 0\n",
    "[load]\nclients = \"many\"\n",
    "[load]\nprotocol = \"prepred\"\n",
    "[load]\non_error = \"abort\"\n",
    "[load]\nreconnect = 1\n",
    "[load]\nrate = 0\n",
    "[load]\nrate = \"fast\"\n",
    "[load]\nlatency_limit = 50\n",
    "[load]\nduration = \"5s\"\ntransactions = 5\n",
    "[load]\nfind = \"max\"\nslo = \"p99 < 20ms\"\n",
    "[load]\nfind = \"max_rate\"\n",
    "[load]\ndefine = { a = [1] }\n",
    "[experiment]\norder = \"interleavd\"\n",
    "[experiment]\nmargin = \"3\"\n",
    "[experiment]\nmargin = 3\n",
    "[experiment]\nrepeats = -1\n",
    "[experiment]\nseed = 1.5\n",
    "[answer]\n",
    "[answer]\nkind = \"best\"\n",
    "[factors]\nclients = 8\n",
    "[factors]\nclients = []\n",
    "[factors]\nclients = [1, 1]\n",
    "[factors]\nclients = [1, 0]\n",
    "[factors]\nwork_mem = [[1]]\n",
    "[factors]\nprotocol = [\"prepred\"]\n",
    "[factors]\nreconnect = [1]\n",
    "[factors]\npostgres.version = [5]\n",
    "[factors]\ncommit = {}\n",
    "[factors]\ncommit = { few = { clients = 0 } }\n",
    "[factors]\ndevice.write_cache = [\"yes\"]\n",
    "[[exclude]]\nclients = [1]\n",
    "[groups.readers]\nclients = 0\n",
    "[groups.readers]\nthreads = 1\n",
    "[groups.readers]\nrate = \"fast\"\n",
    "[groups.readers]\nthink_time = 5\n",
    "[workload]\nscale = 0\n",
    "[workload]\nfiller_compress_percentage = 101\n",
    "[workload]\nscripts = [\"mine.sql\"]\n",
    "[workload]\nscripts = [{ weight = 2 }]\n",
    "[postgres]\nversion = \"new\"\n",
    "[postgres]\nconnect = \"udp\"\n",
    "[postgres]\ninitdb = \"--data-checksums\"\n",
    "[postgres.settings]\nwork_mem = [1]\n",
    "[storage]\ndirectory = \"/mnt\"\n",
    "[storage.d]\nfilesystm = \"xfs\"\n",
    "[storage.d]\nbacking = {}\n",
    "[storage.d]\nbacking = { loop = { size = \"1GiB\" } }\nfilesystem = \"xsf\"\n",
    "[storage.d]\nbacking = { loop = { size = 5 } }\nfilesystem = \"xfs\"\n",
    "[storage.d]\nbacking = { loop = { size = \"1gb\" } }\nfilesystem = \"xfs\"\n",
    "[storage.d]\nbacking = { loop = { size = \"1GiB\" }, ram = \"1GiB\" }\n",
    "[storage.d]\nbacking = { ram = \"1GiB\", chunk = \"64KiB\" }\n",
    "[storage.d]\nbacking = { emulated = { flsh = \"8ms\" } }\nfilesystem = \"xfs\"\n",
    "[storage.d]\nbacking = { emulated = { parallel = 0 } }\nfilesystem = \"xfs\"\n",
    "[storage.d]\ndirectory = \"/mnt\"\nbacking = { directory = \"/mnt\" }\n",
    "[storage.d]\ndirectory = \"/mnt\"\nmount = [\"noatime\"]\n",
    "[storage.d.device]\nhook = { set = [\"a\"] }\n",
    "[storage.d.limit]\nread_bps = 5\n",
    "[telemetry]\ninterval = \"1\"\n",
    "[telemetry]\nstatements = \"yes\"\n",
    "[probe]\nbefore = [\"fsnyc\"]\n",
    "[probe]\nafter = [\"disk\", \"disk\"]\n",
    "[probe]\nblock_sizes = [\"4kB\"]\n",
    "[probe]\nblock_sizes = []\n",
    "[between]\npause = 5\n",
    "[between]\ncommand = \"sync\"\n",
    "[crash]\nrounds = 2\n",
    "[crash]\nfaults = []\n",
    "[crash]\nfaults = [\"powr\"]\n",
    "[crash]\nfaults = [\"power\", \"power\"]\n",
    "[crash]\nfaults = [\"power\"]\nlie = 2.0\n",
    "[crash]\nfaults = [\"power\"]\nunder = \"all\"\n",
    "[crash]\nfaults = [\"power\"]\n[[crash.planted]]\n",
    "[size.large]\nset = {}\n",
    "[size.large]\nabout = \"more\"\nsets = {}\n",
];

#[test]
fn what_the_parser_refuses_for_its_structure_is_invalid() {
    let validator = Validator::new();
    for text in REFUSED {
        assert!(parse(&source(text), &[]).is_err(), "the parser takes {text}");
        assert!(validator.judge(text).is_err(), "the schema takes {text}");
    }
}

/// Calls `visit` with the path and the default of every property below `schema`.
fn defaults(schema: &Value, path: &[&str], visit: &mut dyn FnMut(&[&str], &Value)) {
    let Some(properties) = schema["properties"].as_object() else { return };
    for (name, property) in properties {
        let path = [path, &[name.as_str()]].concat();
        if property["properties"].is_object() {
            defaults(property, &path, visit);
        } else if !property["default"].is_null() {
            visit(&path, &property["default"]);
        }
    }
}

#[test]
fn defaults_are_those_of_the_parser() {
    const DISK: &str = "[storage.d]\nfilesystem = \"ext4\"\nbacking = { emulated = {} }\n";
    const LOOP: &str =
        "[storage.d]\nfilesystem = \"ext4\"\nbacking = { loop = { size = \"9GiB\" } }\n";
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut seen = 0;
    let mut check = |base: &str, path: &[&str], default: &Value| {
        let plain = parse(&source(base), &[]).unwrap();
        let mut table: toml::Table = toml::from_str(base).unwrap();
        let mut here = &mut table;
        for key in &path[..path.len() - 1] {
            let inner = here.entry(*key).or_insert_with(|| toml::Table::new().into());
            here = inner.as_table_mut().unwrap();
        }
        let given = toml::Value::try_from(default).unwrap();
        here.insert(path[path.len() - 1].to_owned(), given);
        let text = render(&table).unwrap();
        assert_eq!(parse(&source(&text), &[]).unwrap(), plain, "{text}");
        seen += 1;
    };
    defaults(&schema, &[], &mut |path, default| match path {
        ["crash", ..] => check("[crash]\nfaults = [\"process\"]\n", path, default),
        _ => check("", path, default),
    });
    let storage = &schema["properties"]["storage"]["additionalProperties"];
    defaults(storage, &["storage", "d"], &mut |path, default| match path {
        [_, _, "backing", "loop", ..] => check(LOOP, path, default),
        _ => check(DISK, path, default),
    });
    assert!(seen > 40, "{seen}");
}
