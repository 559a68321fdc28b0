//! Workloads: a folder with a `workload.toml`, its SQL and its scripts; built in, or the user's
//! own.

use std::path::{Path, PathBuf};

use pgdyno_model::{Advice, FailureKind};
use pgdyno_text::nearest::nearest;
use serde::Deserialize;
use thiserror::Error;

use crate::built_in::{Files, WORKLOADS};
use crate::column_spec::ColumnSpec;

/// A workload, read whole: its tables, its scripts, and SQL around trials.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Name or folder by which it was loaded.
    pub name: String,
    /// Description in a sentence.
    pub description: String,
    /// Tables that the workload works on.
    pub data: DataSet,
    /// Scripts with their weights.
    pub scripts: Vec<ScriptText>,
    /// SQL that runs before every trial, one statement each.
    pub between: Vec<String>,
    /// Query for the rows that acknowledged transactions left in the database, where there is one.
    pub count: Option<Count>,
}

/// Tables, and the rows that they begin with.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSet {
    /// The workload that describes the data set: workloads may share one.
    pub name: String,
    /// SQL that makes the tables.
    pub schema: String,
    /// SQL that runs after the rows are loaded and have their primary keys: indexes, sequences.
    pub keys: String,
    /// Tables to fill, in order.
    pub tables: Vec<TableSpec>,
    /// Room that one unit of scale takes, indexes included (bytes).
    pub bytes_per_scale: u64,
}

impl DataSet {
    /// Returns the names of all tables that its schema makes, filled or not.
    pub fn table_names(&self) -> Vec<&str> {
        let schema = self.schema.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
        let words: Vec<&str> = schema.filter(|word| !word.is_empty()).collect();
        let follows = |at: usize| {
            let optional = ["if", "not", "exists"];
            words[at..].iter().find(|word| !optional.iter().any(|o| word.eq_ignore_ascii_case(o)))
        };
        let kinds = ["create", "unlogged"];
        (1..words.len())
            .filter(|&at| words[at].eq_ignore_ascii_case("table"))
            .filter(|&at| kinds.iter().any(|kind| words[at - 1].eq_ignore_ascii_case(kind)))
            .filter_map(|at| follows(at + 1).copied())
            .collect()
    }
}

/// One table to fill.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// Name of the table.
    pub name: String,
    /// Rows for one unit of scale (count).
    pub rows_per_scale: u64,
    /// The columns that are filled.
    pub columns: Vec<ColumnSpec>,
    /// The columns of the primary key, which is built after the rows are there. Empty if the table
    /// has none, or if its schema makes it.
    #[serde(default)]
    pub primary_key: Vec<String>,
    /// The column by whose ranges the table may be partitioned: one filled with the row's number.
    pub partition_by: Option<String>,
    /// Maintenance after the table is filled.
    #[serde(default)]
    pub tidy: Tidy,
}

/// Maintenance of a table after it is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tidy {
    /// `VACUUM (ANALYZE)`, with FREEZE where its rows are not frozen already.
    #[default]
    Vacuum,
    /// `ANALYZE`.
    Analyze,
    /// Nothing.
    Nothing,
}

/// A script of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptText {
    /// Name of the script: the file's stem.
    pub name: String,
    /// Text of the script, as the file has it.
    pub text: String,
    /// Weight among the workload's scripts.
    pub weight: u32,
    /// The file that the script was read from; none for a built-in script.
    pub file: Option<PathBuf>,
}

/// A query that counts rows, of which every acknowledged transaction adds so many.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// SQL with one bigint as its result.
    pub query: String,
    /// Rows that a transaction adds (count).
    pub rows_per_transaction: u32,
}

/// A workload that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum WorkloadError {
    /// Neither built in nor a folder.
    #[error(
        "cannot load workload `{name}`: there is no built-in workload and no folder of that name"
    )]
    NoSuch {
        /// The name that was given.
        name: String,
        /// The built-in ones, nearest first.
        known: Vec<String>,
    },
    /// A file of the workload is missing or wrong.
    #[error("cannot load workload `{workload}`: {file}: {found}")]
    File {
        workload: String,
        file: String,
        /// The error in the file.
        found: String,
    },
}

impl WorkloadError {
    fn file(workload: &str, file: &str, found: String) -> Self {
        Self::File { workload: workload.into(), file: file.into(), found }
    }
}

impl Advice for WorkloadError {
    fn help(&self) -> Option<String> {
        match self {
            Self::NoSuch { known, .. } => Some(format!(
                "built in are {}; a folder of your own is named with a slash (`./name`) and holds \
                 a workload.toml",
                known.join(", ")
            )),
            Self::File { .. } => None,
        }
    }

    fn kind(&self) -> FailureKind {
        FailureKind::Input
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    description: String,
    data: Data,
    script: Vec<ScriptEntry>,
    #[serde(default)]
    between: BetweenTable,
    count: Option<Count>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    of: Option<String>,
    schema: Option<String>,
    keys: Option<String>,
    bytes_per_scale: Option<u64>,
    #[serde(default)]
    table: Vec<TableSpec>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptEntry {
    file: String,
    weight: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct BetweenTable {
    #[serde(default)]
    sql: Vec<String>,
}

/// Where a workload's files are.
enum Folder {
    BuiltIn(Files),
    Path(PathBuf),
}

impl Folder {
    fn named(name: &str) -> Result<Self, WorkloadError> {
        if name.contains('/') {
            return Ok(Self::Path(PathBuf::from(name)));
        }
        let built_in = WORKLOADS.iter().find(|(folder, _)| *folder == name);
        built_in.map(|(_, files)| Self::BuiltIn(files)).ok_or_else(|| WorkloadError::NoSuch {
            name: name.to_owned(),
            known: nearest(name, &names()).into_iter().map(str::to_owned).collect(),
        })
    }

    /// Returns the path of `file`; none for a built-in workload.
    fn file(&self, file: &str) -> Option<PathBuf> {
        match self {
            Self::BuiltIn(_) => None,
            Self::Path(path) => Some(path.join(file)),
        }
    }

    fn read(&self, workload: &str, file: &str) -> Result<String, WorkloadError> {
        let wrong = |found| WorkloadError::file(workload, file, found);
        match self {
            Self::BuiltIn(files) => files
                .iter()
                .find(|(name, _)| *name == file)
                .map(|(_, text)| (*text).to_owned())
                .ok_or_else(|| wrong("it is missing".into())),
            Self::Path(path) => {
                std::fs::read_to_string(path.join(file)).map_err(|e| wrong(e.to_string()))
            }
        }
    }
}

/// The built-in workloads.
pub fn names() -> Vec<&'static str> {
    WORKLOADS.iter().map(|(name, _)| *name).collect()
}

/// Reads workload `name`; `scripts` of the user's take the place of its own.
///
/// # Errors
/// There is no such workload, or a file of it is missing or wrong.
pub fn load(name: &str, scripts: &[(PathBuf, u32)]) -> Result<Workload, WorkloadError> {
    let mut workload = load_folder(name, 0)?;
    if !scripts.is_empty() {
        workload.scripts = scripts
            .iter()
            .map(|(path, weight)| read_script(name, path, *weight))
            .collect::<Result<_, _>>()?;
        // What the user's scripts add, only the user knows.
        workload.count = None;
    }
    Ok(workload)
}

fn read_script(workload: &str, path: &Path, weight: u32) -> Result<ScriptText, WorkloadError> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|e| WorkloadError::file(workload, &name, e.to_string()))?;
    Ok(ScriptText { name, text, weight, file: Some(path.to_owned()) })
}

/// Checks that the key and the partitions of `table` are of columns that are filled.
fn check_table(
    table: &TableSpec,
    wrong: impl Fn(String) -> WorkloadError,
) -> Result<(), WorkloadError> {
    let name = &table.name;
    if table.columns.is_empty() {
        return Err(wrong(format!("table `{name}` has no columns to fill")));
    }
    let filled = |name: &str| table.columns.iter().find(|c| c.name == name);
    if let Some(by) = &table.partition_by
        && filled(by).is_none_or(|column| !column.is_row_number())
    {
        let found = format!("`{name}` cannot be partitioned by `{by}`: it is not its row_number");
        return Err(wrong(found));
    }
    for key in &table.primary_key {
        let what = match filled(key) {
            None => "is not filled",
            Some(column) if column.null > 0.0 => "is null in some rows",
            Some(_) => continue,
        };
        return Err(wrong(format!("the primary key of `{name}` names `{key}`, which {what}")));
    }
    Ok(())
}

fn load_folder(name: &str, depth: u32) -> Result<Workload, WorkloadError> {
    let folder = Folder::named(name)?;
    let wrong = |found| WorkloadError::file(name, "workload.toml", found);
    let text = folder.read(name, "workload.toml")?;
    let file: File = toml::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    let data = match (&file.data.of, &file.data.schema) {
        (Some(_), Some(_)) => {
            return Err(wrong("`data.of` and `data.schema` exclude each other".into()));
        }
        (Some(_), None) if depth > 3 => {
            return Err(wrong("`data.of` goes round in a circle".into()));
        }
        (Some(of), None) => load_folder(of, depth + 1)?.data,
        (None, schema) => DataSet {
            name: name.to_owned(),
            schema: schema.as_deref().map_or(Ok(String::new()), |f| folder.read(name, f))?,
            keys: file.data.keys.as_deref().map_or(Ok(String::new()), |f| folder.read(name, f))?,
            tables: file.data.table,
            bytes_per_scale: file.data.bytes_per_scale.unwrap_or(0),
        },
    };
    data.tables.iter().try_for_each(|table| check_table(table, wrong))?;
    let scripts = file
        .script
        .iter()
        .map(|s| {
            let stem = Path::new(&s.file)
                .file_stem()
                .map_or_else(|| s.file.clone(), |n| n.to_string_lossy().into_owned());
            Ok(ScriptText {
                name: stem,
                text: folder.read(name, &s.file)?,
                weight: s.weight.unwrap_or(1),
                file: folder.file(&s.file),
            })
        })
        .collect::<Result<Vec<_>, WorkloadError>>()?;
    if scripts.iter().all(|s| s.weight == 0) {
        return Err(wrong("it has no script with a weight above 0".into()));
    }
    Ok(Workload {
        name: name.to_owned(),
        description: file.description,
        data,
        scripts,
        between: file.between.sql,
        count: file.count,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_workload_is_whole() {
        assert!(names().contains(&"tpcb-like") && names().len() >= 3);
        for name in names() {
            let workload = load(name, &[]).unwrap();
            assert!(
                !workload.scripts.is_empty() && !workload.data.table_names().is_empty(),
                "{name}"
            );
        }
        assert_eq!(load("select-only", &[]).unwrap().data.name, "tpcb-like");
    }

    #[test]
    fn a_slip_is_answered_with_the_nearest() {
        let error = load("tpcb", &[]).unwrap_err();
        assert!(error.help().unwrap().contains("built in are tpcb-like, "), "{:?}", error.help());
    }

    #[test]
    fn a_folder_of_the_users_can_share_the_data_of_a_built_in_one() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().display().to_string();
        std::fs::write(folder.path().join("s.sql"), "SELECT 1;\n").unwrap();
        let toml =
            "description = \"one\"\n[data]\nof = \"tpcb-like\"\n[[script]]\nfile = \"s.sql\"\n";
        std::fs::write(folder.path().join("workload.toml"), toml).unwrap();
        let workload = load(&name, &[]).unwrap();
        assert_eq!(
            (workload.data.name.as_str(), workload.scripts[0].text.as_str()),
            ("tpcb-like", "SELECT 1;\n")
        );
        std::fs::write(folder.path().join("workload.toml"), toml.replace("s.sql", "t.sql"))
            .unwrap();
        assert!(load(&name, &[]).unwrap_err().to_string().contains("t.sql"));
    }
}
