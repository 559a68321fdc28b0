//! New experiment files, with comments for somebody who has never seen one.
//!
//! Fill a [`Draft`], hold it against the parser with [`Draft::prepare`], let [`Draft::fit`] choose
//! repeats and durations for a time, and write [`Draft::text`] to a file.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pgdyno_model::units::Span;
use pgdyno_text::printable::escape_line;
use strum::{EnumString, IntoStaticStr, VariantArray, VariantNames};

use crate::error::ExperimentError;
use crate::estimate;
use crate::file::Source;
use crate::host::Host;
use crate::resolved_experiment::ResolvedExperiment;

/// Repeats and seconds of a trial, the longest first. None is below three repeats.
const SIZES: &[(u32, u64)] =
    &[(10, 60), (7, 60), (5, 60), (7, 30), (5, 30), (5, 20), (5, 10), (4, 10), (4, 5), (3, 5)];

/// A question that many users have, with the factors that answer it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray, VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum Preset {
    /// Commit settings.
    Commit,
    /// The number of clients.
    Clients,
    /// Settings of WAL and checkpoints.
    Wal,
    /// Versions of PostgreSQL.
    Versions,
    /// Filesystems, in loop files.
    Filesystems,
}

impl Preset {
    /// All presets, in the order in which they are offered.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;
    /// Names of the presets, in that order.
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;

    /// Returns the name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the preset called `name`.
    pub fn parse(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// Returns the question that it answers.
    pub fn question(self) -> &'static str {
        match self {
            Self::Commit => "What does waiting for the disk at commit cost?",
            Self::Clients => "How does the throughput grow with the number of clients?",
            Self::Wal => "Do other settings of WAL and checkpoints pay?",
            Self::Versions => "Which version of PostgreSQL is faster?",
            Self::Filesystems => "Which filesystem is faster?",
        }
    }

    /// Returns the lines of `[factors]`.
    fn factors(self) -> &'static str {
        match self {
            Self::Commit => {
                "# `wait` is PostgreSQL's default. `async` may lose the last moments in a crash.\n\
                 [factors.commit]\n\
                 wait = {}\n\
                 group = { commit_delay = 50, commit_siblings = 4 }\n\
                 async = { synchronous_commit = \"off\" }\n"
            }
            Self::Clients => "[factors]\nclients = [1, 2, 4, 8, 16, 32]\n",
            Self::Wal => {
                "# `default` changes nothing.\n\
                 [factors.wal]\n\
                 default = {}\n\
                 compressed = { wal_compression = \"on\" }\n\
                 large = { max_wal_size = \"4GB\", checkpoint_timeout = \"15min\" }\n"
            }
            Self::Versions => {
                "# A version that is not installed is fetched.\n\
                 [factors]\n\
                 postgres.version = [17, 18]\n"
            }
            Self::Filesystems => {
                "# Names of the tables `[storage.NAME]` below.\n\
                 [factors]\n\
                 storage = [\"ext4\", \"xfs\", \"btrfs\"]\n"
            }
        }
    }

    /// Returns whether it sets the number of clients.
    fn sets_clients(self) -> bool {
        self == Self::Clients
    }
}

/// A factor of the user's own.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftFactor {
    key: String,
    levels: Vec<toml::Value>,
}

impl DraftFactor {
    /// Creates the factor that varies `key` over `levels`, parted by commas. Each level is TOML
    /// where it parses as TOML, else text. A TOML list is taken as it is.
    fn new(key: &str, levels: &str) -> Self {
        let toml = |text: &str| {
            let table = toml::from_str::<toml::Table>(&format!("v = {text}")).ok();
            table.filter(|table| table.len() == 1).and_then(|mut table| table.remove("v"))
        };
        let list = levels.trim_start().starts_with('[').then(|| toml(levels)).flatten();
        let levels = match list {
            Some(toml::Value::Array(levels)) => levels,
            _ => {
                let parts = levels.split(',').map(str::trim).filter(|text| !text.is_empty());
                parts.map(|text| toml(text).unwrap_or_else(|| text.into())).collect()
            }
        };
        Self { key: key.trim().to_owned(), levels }
    }

    /// Reads `KEY=V1,V2`. Returns `None` where there is no key or no `=`.
    pub fn parse(given: &str) -> Option<Self> {
        let (key, levels) = given.split_once('=')?;
        (!key.trim().is_empty()).then(|| Self::new(key, levels))
    }
}

/// Size of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunSize {
    /// Combinations of levels (count).
    pub treatments: usize,
    /// The whole run's time, in whole seconds.
    pub time: Span,
}

impl RunSize {
    /// Returns the size of the run of `resolved`.
    pub fn new(resolved: &ResolvedExperiment) -> Self {
        let most = estimate::time(resolved).most;
        let time = Span(Duration::from_secs(most.as_secs().max(1)));
        Self { treatments: resolved.plan.treatments.len(), time }
    }
}

/// A new experiment. A field that is `None` has a default.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The file that is to be written. Its stem is the experiment's name.
    pub file: PathBuf,
    /// Heads the report. By default the preset's.
    pub question: Option<String>,
    /// The factors of a usual question.
    pub preset: Option<Preset>,
    /// Further factors.
    pub factors: Vec<DraftFactor>,
    /// A built-in workload or a folder.
    pub workload: String,
    /// The data set's size in the workload's unit.
    pub scale: NonZeroU32,
    /// Connections, where no factor varies them.
    pub clients: NonZeroU32,
    /// The measured window of a trial.
    pub duration: Span,
    /// Trials of every treatment.
    pub repeats: NonZeroU32,
    /// The folder on the disk to be measured. `None`: pgdyno's own.
    pub storage: Option<PathBuf>,
}

impl Draft {
    /// Creates a draft of `file` with the defaults, without factors.
    pub fn new(file: &Path) -> Self {
        let count = |n: u32| NonZeroU32::MIN.saturating_add(n - 1);
        Self {
            file: file.to_owned(),
            question: None,
            preset: None,
            factors: Vec::new(),
            workload: "tpcb-like".to_owned(),
            scale: count(10),
            clients: count(8),
            duration: Span::from_secs(10),
            repeats: count(5),
            storage: None,
        }
    }

    /// Returns the file's text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        self.head(&mut out);
        self.experiment(&mut out);
        self.all_factors(&mut out);
        self.load(&mut out);
        self.storages(&mut out);
        out
    }

    /// Makes the experiment ready that the file would describe.
    ///
    /// # Errors
    /// A value that the parser or the plan refuses.
    pub fn prepare(&self, host: &dyn Host) -> Result<ResolvedExperiment, ExperimentError> {
        ResolvedExperiment::new(Source::new(&self.file, self.text()), Vec::new(), host)
    }

    /// Chooses repeats and the duration of a trial so that the run takes at most `limit`, where
    /// that is possible: else the fewest and shortest.
    ///
    /// # Errors
    /// As [`Draft::prepare`].
    pub fn fit(&mut self, limit: Span, host: &dyn Host) -> Result<(), ExperimentError> {
        for (repeats, seconds) in SIZES {
            self.repeats = NonZeroU32::MIN.saturating_add(repeats - 1);
            self.duration = Span::from_secs(*seconds);
            if RunSize::new(&self.prepare(host)?).time <= limit {
                break;
            }
        }
        Ok(())
    }

    fn head(&self, out: &mut String) {
        let file = self.file.display().to_string();
        let file = escape_line(&file);
        // The line is only true where the schema lies there.
        let has_schema = self.file.with_file_name("experiment.schema.json").exists();
        if has_schema {
            out.push_str("#:schema ./experiment.schema.json\n");
        }
        let _ = write!(
            out,
            "# An experiment of pgdyno, written by `pgdyno new`. Every key: docs/experiments.md.\n\
             #\n\
             #   pgdyno run {file} --dry-run    the plan; nothing is changed\n\
             #   pgdyno run {file}              measure\n"
        );
        if !has_schema {
            out.push_str(
                "#\n\
                 # An editor completes and checks the keys after\n\
                 #   pgdyno schema > experiment.schema.json\n\
                 # in this folder, with this as the file's first line:\n\
                 #   #:schema ./experiment.schema.json\n",
            );
        }
    }

    fn experiment(&self, out: &mut String) {
        let preset = self.preset.map(|preset| preset.question().to_owned());
        let keys: Vec<&str> = self.factors.iter().map(|factor| factor.key.as_str()).collect();
        let question = self.question.clone().or(preset);
        let question = question.unwrap_or_else(|| format!("What does {} do?", keys.join(", ")));
        let _ = write!(
            out,
            "\n[experiment]\n\
             # Heads the report.\n\
             question = {}\n\
             # Trials of every treatment. More repeats show smaller differences.\n\
             repeats = {}\n",
            quote(&question),
            self.repeats
        );
        if self.preset.is_some_and(Preset::sets_clients) {
            out.push_str("\n[answer]\n# How tps grows with clients.\nkind = \"sweep\"\n");
        }
    }

    fn all_factors(&self, out: &mut String) {
        out.push_str(
            "\n# What varies. Each factor has levels: values in a list, or named tables that set\n\
             # several keys at once. pgdyno runs every combination of levels.\n",
        );
        if !self.factors.is_empty() {
            out.push_str("[factors]\n");
            for DraftFactor { key, levels } in &self.factors {
                let levels = toml::Value::Array(levels.clone());
                let _ = writeln!(out, "{} = {levels}", toml_key(key));
            }
        }
        if let Some(preset) = self.preset {
            // One file has one `[factors]`.
            let lines = preset.factors();
            let lines = match self.factors.is_empty() {
                true => lines.to_owned(),
                false => lines.replace("[factors]\n", ""),
            };
            out.push_str(&lines);
        }
    }

    /// Returns whether a factor of the user's own varies `key`.
    fn varies(&self, key: &str) -> bool {
        self.factors.iter().any(|factor| factor.key == key)
    }

    fn load(&self, out: &mut String) {
        out.push_str("\n[workload]\n");
        if !self.varies("workload") {
            let names = pgdyno_dataset::workload::names();
            let names: Vec<String> = names.chunks(6).map(|names| names.join(", ")).collect();
            let _ = write!(
                out,
                "# One of {};\n# or a folder of your own, \"./folder\".\nname = {}\n",
                names.join(",\n# "),
                quote(&self.workload)
            );
        }
        if !self.varies("scale") {
            let _ = write!(
                out,
                "# The data set's size. tpcb-like has about 16 MB for each unit. Data larger than\n\
                 # memory measure the disk's reads, smaller data its flushes.\n\
                 scale = {}\n",
                self.scale
            );
        }
        out.push_str("\n[load]\n");
        if !self.varies("clients") && !self.preset.is_some_and(Preset::sets_clients) {
            let _ = writeln!(out, "# Connections.\nclients = {}", self.clients);
        }
        let warm_up = Span::from_secs((self.duration.0.as_secs() / 6).max(1));
        let _ = write!(
            out,
            "# Each trial is measured for so long, after the warm-up.\n\
             duration = \"{}\"\n\
             warm_up = \"{warm_up}\"\n",
            self.duration
        );
        if !self.varies("protocol") {
            out.push_str("# \"simple\", \"extended\" or \"prepared\".\nprotocol = \"prepared\"\n");
        }
    }

    fn storages(&self, out: &mut String) {
        let folder = self.storage.as_ref().map(|folder| {
            let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
            quote(&folder.display().to_string())
        });
        if self.preset != Some(Preset::Filesystems) {
            out.push_str("\n[storage.disk]\n# An existing folder on the disk to be measured.");
            out.push_str(match folder {
                Some(_) => "\n",
                None => " Without it, pgdyno's own folder.\n",
            });
            let line = folder.map_or("# directory = \"/mnt/disk\"".to_owned(), |folder| {
                format!("directory = {folder}")
            });
            let _ = writeln!(out, "{line}");
            return;
        }
        out.push_str(
            "\n# Each filesystem is made in a file of this size and removed. This needs root.\n\
             # `directory` is an existing folder on the disk to be measured.\n",
        );
        let folder = folder.map(|folder| format!(", directory = {folder}")).unwrap_or_default();
        for filesystem in ["ext4", "xfs", "btrfs"] {
            let _ = write!(
                out,
                "\n[storage.{filesystem}]\n\
                 backing = {{ loop = {{ size = \"4GiB\"{folder} }} }}\n\
                 filesystem = \"{filesystem}\"\n"
            );
        }
    }
}

/// Returns a key of `[factors]`: as it is where that is TOML, else in quotes.
fn toml_key(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if key.split('.').all(|part| !part.is_empty() && part.chars().all(bare)) {
        return key.to_owned();
    }
    quote(key)
}

/// Returns `text` in quotes, on one line: what JSON escapes, TOML escapes alike.
fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::NoDevices;

    fn draft(factors: &[&str]) -> Draft {
        let factors = factors.iter().map(|given| DraftFactor::parse(given).unwrap()).collect();
        Draft { factors, ..Draft::new(Path::new("/none/mine.toml")) }
    }

    fn factors(draft: &Draft) -> Vec<String> {
        let resolved = draft.prepare(&NoDevices).unwrap();
        let factors = resolved.experiment.factors.iter();
        factors
            .map(|factor| {
                let labels: Vec<String> =
                    factor.levels.iter().map(|level| format!("{:?}", level.label)).collect();
                format!("{}: {}", factor.name, labels.join(" "))
            })
            .collect()
    }

    #[test]
    fn values_have_the_types_of_toml_and_names_may_have_dots() {
        let draft = draft(&[
            "clients=1, 8",
            "synchronous_commit=on,off",
            "auto_explain.log_analyze=true,false",
            "search_path=['a, b', \"c\"]",
        ]);
        assert_eq!(
            factors(&draft),
            [
                "clients: Int(1) Int(8)",
                r#"synchronous_commit: Text("on") Text("off")"#,
                "auto_explain.log_analyze: Bool(true) Bool(false)",
                r#"search_path: Text("a, b") Text("c")"#,
            ]
        );
    }

    #[test]
    fn a_preset_may_have_further_factors() {
        for preset in Preset::ALL {
            let draft = Draft { preset: Some(*preset), ..draft(&["work_mem=4MB,64MB"]) };
            assert_eq!(factors(&draft).len(), 2, "{}", draft.text());
            assert_eq!(Preset::parse(preset.name()), Some(*preset));
        }
        assert!(Preset::ALL.iter().map(|preset| preset.name()).eq(Preset::NAMES.iter().copied()));
    }

    #[test]
    fn a_text_of_the_users_stays_one_value() {
        let question = "\"\n[load]\nclients = 0 '''";
        let mut draft = draft(&["clients=1"]);
        draft.question = Some(question.to_owned());
        draft.file = PathBuf::from("/none/a\nb.toml");
        assert_eq!(
            draft.prepare(&NoDevices).unwrap().experiment.question.as_deref(),
            Some(question)
        );
    }

    #[test]
    fn the_longest_trials_that_fit_are_chosen() {
        let mut draft = draft(&["work_mem=4MB,64MB"]);
        let mut sizes = Vec::new();
        for minutes in [1, 5, 20, 60] {
            draft.fit(Span::from_secs(60 * minutes), &NoDevices).unwrap();
            let time = RunSize::new(&draft.prepare(&NoDevices).unwrap()).time;
            assert!(time <= Span::from_secs(60 * minutes), "{minutes}: {time}");
            sizes.push((draft.repeats.get(), draft.duration));
        }
        assert!(sizes.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{sizes:?}");
        assert_eq!(sizes[3], (10, Span::from_secs(60)));
        // Nothing is so short; the shortest is taken.
        draft.fit(Span::from_secs(1), &NoDevices).unwrap();
        assert_eq!((draft.repeats.get(), draft.duration), (3, Span::from_secs(5)));
    }
}
