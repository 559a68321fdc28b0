//! `workload.toml`, and the files that it names.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use pgdyno_engine::script::is_variable_name;
use pgdyno_model::level::LevelValue;
use pgdyno_model::load_rate::LoadRate;
use pgdyno_model::units::Span;
use pgdyno_model::{ClientGroup, Pauses};
use pgdyno_text::nearest::nearest;
use serde::Deserialize;

use super::{
    Consistency, Count, DataSet, ScriptText, TableRows, TableSpec, Tidy, Workload, WorkloadError,
    names,
};
use crate::built_in::{Files, WORKLOADS};
use crate::column_spec::{ColumnSpec, Values};
use crate::column_table::{ColumnTable, TableContext, families};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    description: String,
    headline: Option<String>,
    pauses: Option<f64>,
    data: Data,
    #[serde(default)]
    script: Vec<ScriptEntry>,
    #[serde(default)]
    group: Vec<GroupEntry>,
    #[serde(default)]
    define: BTreeMap<String, LevelValue>,
    #[serde(default)]
    between: BetweenTable,
    count: Option<Count>,
    #[serde(default)]
    consistency: Vec<Consistency>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    of: Option<String>,
    schema: Option<String>,
    after_schema: Option<String>,
    keys: Option<String>,
    bytes_per_scale: Option<u64>,
    #[serde(default)]
    table: Vec<TableTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptEntry {
    file: String,
    weight: Option<u32>,
    #[serde(default)]
    keying_time: Span,
    #[serde(default)]
    think_time: Span,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupEntry {
    name: String,
    clients: Option<u32>,
    rate: Option<LoadRate>,
    #[serde(default)]
    think_time: Span,
    #[serde(default)]
    script: Vec<ScriptEntry>,
}

impl File {
    /// Returns the groups of clients, or the error in them.
    fn groups(&self) -> Result<Vec<ClientGroup>, String> {
        let groups: Vec<ClientGroup> =
            self.group.iter().map(GroupEntry::read).collect::<Result<_, _>>()?;
        let is_second = |at: usize| groups[..at].iter().any(|g| g.name == groups[at].name);
        if let Some(second) = (0..groups.len()).find(|at| is_second(*at)) {
            return Err(format!("two groups are called `{}`", groups[second].name));
        }
        let excluded = [
            (
                !self.script.is_empty(),
                "`[[script]]` and `[[group]]` exclude each other: groups have scripts of their own",
            ),
            (
                self.count.is_some(),
                "`[count]` and `[[group]]` exclude each other: not every transaction adds its rows",
            ),
        ];
        match excluded.into_iter().find(|(is_there, _)| *is_there && !groups.is_empty()) {
            Some((_, why)) => Err(why.to_owned()),
            None => Ok(groups),
        }
    }
}

impl ScriptEntry {
    /// Reads the script from `folder` of `workload`.
    fn read(&self, workload: &str, folder: &Folder) -> Result<ScriptText, WorkloadError> {
        let stem = Path::new(&self.file).file_stem();
        Ok(ScriptText {
            name: stem.map_or_else(|| self.file.clone(), |n| n.to_string_lossy().into_owned()),
            text: folder.read(workload, &self.file)?,
            weight: self.weight.unwrap_or(1),
            pauses: Pauses { keying_time: self.keying_time, think_time: self.think_time },
            file: folder.file(&self.file),
        })
    }
}

impl GroupEntry {
    /// Returns the group, or the error in it.
    fn read(&self) -> Result<ClientGroup, String> {
        let name = &self.name;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(format!(
                "`{name}` is no name of a group: letters, digits, `_` and `-` are"
            ));
        }
        let Some(clients) = self.clients.and_then(NonZeroU32::new) else {
            return Err(format!("group `{name}` has no clients: give it `clients = 1` or more"));
        };
        if self.script.iter().all(|s| s.weight == Some(0)) {
            return Err(format!("group `{name}` has no script with a weight above 0"));
        }
        let (rate, think_time) = (self.rate.clone(), self.think_time);
        let scripts = self.script.len();
        Ok(ClientGroup { clients, rate, think_time, ..ClientGroup::new(name, scripts) })
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct BetweenTable {
    #[serde(default)]
    sql: Vec<String>,
}

/// Returns the files of the built-in workload `name`.
fn built_in(name: &str) -> Option<Files> {
    WORKLOADS.iter().find(|(folder, _)| *folder == name).map(|(_, files)| *files)
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
        built_in(name).map(Self::BuiltIn).ok_or_else(|| WorkloadError::NoSuch {
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
            Self::BuiltIn(files) => {
                // As a path would be read: from beside the folder, or from within it.
                let beside = file.strip_prefix("../").and_then(|path| path.split_once('/'));
                let (files, file) = match beside {
                    Some((folder, file)) => (built_in(folder), file),
                    None => (Some(*files), file),
                };
                let mut all = files.into_iter().flatten();
                let text = all.find(|(name, _)| *name == file).map(|(_, text)| (*text).to_owned());
                text.ok_or_else(|| wrong("it is missing".into()))
            }
            Self::Path(path) => {
                std::fs::read_to_string(path.join(file)).map_err(|e| wrong(e.to_string()))
            }
        }
    }
}

pub(super) fn read_script(
    workload: &str,
    path: &Path,
    weight: u32,
) -> Result<ScriptText, WorkloadError> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|e| WorkloadError::file(workload, &name, e.to_string()))?;
    let (pauses, file) = (Pauses::default(), Some(path.to_owned()));
    Ok(ScriptText { name, text, weight, pauses, file })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableTable {
    name: String,
    rows_per_scale: Option<u64>,
    rows: Option<u64>,
    children_of: Option<ChildrenTable>,
    columns: Vec<ColumnTable>,
    #[serde(default)]
    primary_key: Vec<String>,
    partition_by: Option<String>,
    #[serde(default)]
    tidy: Tidy,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChildrenTable {
    table: String,
    each: (u32, u32),
}

impl TableTable {
    /// Returns the table, which comes after those of `before`, or the error in it.
    fn read(self, before: &[TableSpec]) -> Result<TableSpec, String> {
        let Self { name, columns, primary_key, partition_by, tidy, .. } = self;
        let children = match self.children_of {
            Some(ChildrenTable { table, .. }) if before.iter().all(|t| t.name != table) => {
                return Err(format!(
                    "table `{name}` is `children_of` `{table}`, which is no table before it"
                ));
            }
            Some(ChildrenTable { table, each: (least, most) }) => Some(
                families(&table, least, most)
                    .map_err(|wrong| format!("table `{name}`: {wrong}"))?,
            ),
            None => None,
        };
        let context = TableContext { name: &name, families: children.as_ref() };
        let columns = columns.into_iter().map(|column| column.into_spec(&context));
        let columns = columns.collect::<Result<Vec<_>, _>>();
        let columns = columns.map_err(|wrong| format!("table `{name}`: {wrong}"))?;
        for column in &columns {
            check_reference(&column.name, &column.values, before)
                .map_err(|wrong| format!("table `{name}`: {wrong}"))?;
        }
        let rows = match (self.rows_per_scale, self.rows, children) {
            (Some(rows), None, None) => TableRows::PerScale(rows),
            (None, Some(rows), None) => TableRows::Fixed(rows),
            (None, None, Some(families)) => TableRows::Children(families),
            _ => {
                return Err(format!(
                    "table `{name}` needs exactly one of rows_per_scale, rows, children_of"
                ));
            }
        };
        Ok(TableSpec { name, rows, columns, primary_key, partition_by, tidy })
    }
}

/// Checks that `values` refer, if they do, to the row numbers of a table of `before`.
fn check_reference(name: &str, values: &Values, before: &[TableSpec]) -> Result<(), String> {
    let of = match values {
        Values::References(of) => of,
        Values::Array { values, .. } => return check_reference(name, values, before),
        Values::First { first, rest, .. } => {
            let mut parts = [first, rest].into_iter().flatten();
            return parts.try_for_each(|values| check_reference(name, values, before));
        }
        _ => return Ok(()),
    };
    let found = match before.iter().find(|table| table.name == *of) {
        Some(table) if table.columns.iter().any(ColumnSpec::is_row_number) => return Ok(()),
        Some(_) => "of which no column is its row_number",
        None => "which is no table before it",
    };
    Err(format!("column `{name}` references `{of}`, {found}"))
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

/// Reads `tables`, each with those before it.
fn tables(tables: Vec<TableTable>) -> Result<Vec<TableSpec>, String> {
    let mut read: Vec<TableSpec> = Vec::new();
    for table in tables {
        read.push(table.read(&read)?);
    }
    Ok(read)
}

/// Checks that `headline` names one of `scripts`.
fn check_headline(headline: &str, scripts: &[ScriptText]) -> Result<(), String> {
    let names: Vec<&str> = scripts.iter().map(|script| script.name.as_str()).collect();
    if names.contains(&headline) {
        return Ok(());
    }
    let known = nearest(headline, &names).join(", ");
    Err(format!("`headline` names `{headline}`, which is no script of it: those are {known}"))
}

/// Reads the workload `name`, whose data `depth` others have.
pub(super) fn load_folder(name: &str, depth: u32) -> Result<Workload, WorkloadError> {
    let folder = Folder::named(name)?;
    let wrong = |found| WorkloadError::file(name, "workload.toml", found);
    let text = folder.read(name, "workload.toml")?;
    let file: File = toml::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    let groups = file.groups().map_err(wrong)?;
    let sql = |file: &Option<String>| {
        file.as_deref().map_or(Ok(String::new()), |file| folder.read(name, file))
    };
    let mut consistency = Vec::new();
    let data = match (&file.data.of, &file.data.schema) {
        (Some(_), Some(_)) => {
            return Err(wrong("`data.of` and `data.schema` exclude each other".into()));
        }
        (Some(_), None) if depth > 3 => {
            return Err(wrong("`data.of` goes round in a circle".into()));
        }
        (Some(of), None) => {
            let of = load_folder(of, depth + 1)?;
            consistency = of.consistency;
            of.data
        }
        (None, schema) => DataSet {
            name: name.to_owned(),
            schema: sql(schema)?,
            after_schema: sql(&file.data.after_schema)?,
            keys: sql(&file.data.keys)?,
            tables: tables(file.data.table).map_err(wrong)?,
            bytes_per_scale: file.data.bytes_per_scale.unwrap_or(0),
        },
    };
    consistency.extend(file.consistency);
    data.tables.iter().try_for_each(|table| check_table(table, wrong))?;
    let scripts = file.script.iter().chain(file.group.iter().flat_map(|group| &group.script));
    let scripts = scripts.map(|script| script.read(name, &folder));
    let scripts = scripts.collect::<Result<Vec<_>, WorkloadError>>()?;
    if scripts.iter().all(|s| s.weight == 0) {
        return Err(wrong("it has no script with a weight above 0".into()));
    }
    if let Some(factor) = file.pauses
        && !Pauses::is_factor(factor)
    {
        return Err(wrong(format!(
            "`pauses = {factor}` is no number from 0 to {}",
            Pauses::MOST_TIMES
        )));
    }
    if let Some(variable) = file.define.keys().find(|name| !is_variable_name(name)) {
        return Err(wrong(format!("`{variable}` in [define] cannot be a variable's name")));
    }
    if let Some(headline) = &file.headline {
        check_headline(headline, &scripts).map_err(wrong)?;
    }
    Ok(Workload {
        name: name.to_owned(),
        description: file.description,
        data,
        scripts,
        groups,
        headline: file.headline,
        pauses: file.pauses.unwrap_or(1.0),
        define: file.define.into_iter().map(|(name, value)| (name, value.to_variable())).collect(),
        between: file.between.sql,
        count: file.count,
        consistency,
    })
}
