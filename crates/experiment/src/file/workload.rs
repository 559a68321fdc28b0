//! `[workload]`: the data set and its scripts.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use pgdyno_model::experiment::{Loading, WorkloadChoice};
use serde::Deserialize;
use toml::Spanned;

use super::error::Complaint;
use super::levels::{flatten, setting_value};
use super::source::Source;

/// Seeds the rows of data sets, unless the file says otherwise: runs of one experiment hold the
/// same data.
const DATA_SEED: u64 = 1;

#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(super) struct WorkloadTable {
    /// A built-in workload, or a folder of your own with a slash in its name.
    #[cfg_attr(test, schemars(schema_with = "super::schema::workload"))]
    #[cfg_attr(test, schemars(extend("default" = "tpcb-like")))]
    name: Option<String>,
    /// The data set's size. For pgbench's tables 100,000 accounts, about 16 MB.
    #[cfg_attr(test, schemars(extend("default" = 1)))]
    scale: Option<NonZeroU32>,
    /// Seed for generated rows.
    #[cfg_attr(test, schemars(extend("default" = 1)))]
    seed: Option<u64>,
    /// Your scripts on the workload's tables, in place of its own.
    scripts: Vec<ScriptTable>,
    /// The share of blanks in every filler. pgbench's 100 shrinks to nearly nothing on filesystems
    /// that compress.
    #[cfg_attr(test, schemars(with = "u8", extend("maximum" = 100, "default" = 100)))]
    filler_compress_percentage: Option<Spanned<i64>>,
    /// Number of partitions of each table with `partition_by`. 0: none.
    partitions: u32,
    /// Connections that load in parallel. By default one for each core.
    jobs: Option<NonZeroU32>,
    /// Settings of a managed server while rows are loaded.
    #[cfg_attr(test, schemars(with = "super::schema::FreeTable"))]
    load_settings: toml::Table,
    /// Keep loaded clusters, and copy them in later runs with equal data. `pgdyno clean
    /// --templates` removes them.
    keep_template: bool,
}

impl WorkloadTable {
    /// How its rows are made and loaded; `given`: on a server that is not pgdyno's.
    fn loading(&mut self, given: bool) -> Result<Loading, Complaint> {
        let percentage = match self.filler_compress_percentage.take() {
            None => Loading::default().filler_compress_percentage,
            Some(given) => {
                u8::try_from(*given.get_ref()).ok().filter(|p| *p <= 100).ok_or_else(|| {
                    Complaint::new(format!("{}% of filler cannot be blanks", given.get_ref()))
                        .with_help("0 to 100: 100 is what pgbench writes, 0 hardly shrinks")
                        .at(given.span())
                })?
            }
        };
        if given && !self.load_settings.is_empty() {
            return Err(Complaint::new(
                "`workload.load_settings` changes a server, and `postgres.dsn` names one that is \
                 not pgdyno's",
            )
            .with_help("keep one of the two"));
        }
        let mut settings = BTreeMap::new();
        for (name, value) in flatten(&self.load_settings) {
            let value = setting_value(&name, value)?.to_string();
            settings.insert(name, value);
        }
        Ok(Loading {
            filler_compress_percentage: percentage,
            partitions: self.partitions,
            jobs: self.jobs,
            settings,
        })
    }

    /// Returns the workload; `is_external`: on a server that is not pgdyno's.
    pub(super) fn into_choice(
        mut self,
        is_external: bool,
        source: &Source,
    ) -> Result<WorkloadChoice, Complaint> {
        let loading = self.loading(is_external)?;
        if self.keep_template && is_external {
            return Err(Complaint::new(
                "`workload.keep_template` keeps a cluster, and `postgres.dsn` names one that is \
                 not pgdyno's",
            )
            .with_help("keep one of the two"));
        }
        let script = |s: ScriptTable| (source.absolute(s.file), s.weight.unwrap_or(1));
        Ok(WorkloadChoice {
            seed: self.seed.unwrap_or(DATA_SEED),
            loading,
            keep_template: self.keep_template,
            name: workload_name(self.name, &source.base),
            scale: self.scale.unwrap_or(NonZeroU32::MIN),
            scripts: self.scripts.into_iter().map(script).collect(),
        })
    }
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct ScriptTable {
    /// The script. A relative path starts from the experiment file's folder.
    file: PathBuf,
    /// How often the script is chosen, in proportion to the weights of the others.
    #[cfg_attr(test, schemars(extend("default" = 1)))]
    weight: Option<u32>,
}

/// A folder is meant where the name has a slash; it is then taken from the file's folder.
fn workload_name(name: Option<String>, base: &Path) -> String {
    match name {
        None => "tpcb-like".into(),
        Some(n) if n.contains('/') && !n.starts_with('/') => base.join(n).display().to_string(),
        Some(n) => n,
    }
}
