//! A run of an archive.

use std::sync::OnceLock;

use serde_json::Value;

use super::{Table, Treatment, count, percent};
use crate::support::{World, docs, elements};

/// The archives beside the pages, each with the recipe of its run.
pub const ARCHIVES: [(&str, &str); 9] = [
    ("000-ssd-acceptance", "ssd-acceptance"),
    ("000-wal-blocks", "ssd-acceptance"),
    ("001-filesystem-options", "filesystem-options"),
    ("001-filesystems", "filesystems"),
    ("002-commit-loss", "commit-loss"),
    ("002-group-commit", "group-commit"),
    ("002-group-commit-sustained", "group-commit"),
    ("003-big-table", "big-table"),
    ("004-zfs-xfs", "zfs-xfs"),
];

static OPENED: [OnceLock<Run>; ARCHIVES.len()] = [const { OnceLock::new() }; ARCHIVES.len()];

/// A run of an archive.
pub struct Run {
    /// The analysed run, as `pgdyno show --json` has it.
    pub(super) view: Value,
    telemetry: Vec<Sample>,
    /// The seconds of all trials, as exports have them.
    pub(super) seconds: Vec<Value>,
    /// Probes with their results, in the order in which they ran.
    probes: Vec<Value>,
}

/// A value of telemetry.
struct Sample {
    /// The trial's place in the run, from 1.
    trial: u64,
    /// The probe and the column's name in it, such as `cpu idle`.
    column: String,
    /// Time since the window opened (seconds).
    t_s: f64,
    value: f64,
}

impl Run {
    /// Reads the run of docs/field-reports/runs/`name`.pgdyno.
    pub fn open(name: &str) -> &'static Self {
        let at = ARCHIVES.iter().position(|(archive, _)| *archive == name).unwrap();
        OPENED[at].get_or_init(|| Self::read(name, ARCHIVES[at].1))
    }

    /// Takes an archive into a store, and exports its run.
    fn read(name: &str, recipe: &str) -> Self {
        let archive = docs::path(&format!("field-reports/runs/{name}.pgdyno"));
        let world = World::new();
        let imported = world.run(&["import", "--json", &archive]).exits(0).json();
        assert_eq!(elements(&imported["added"]).len(), 1, "{archive} has one run: {imported}");
        let id = imported["added"][0].as_str().unwrap();
        let mut exported = world.run(&["export", id, "--format", "json"]).exits(0).json();
        let view = exported["run"].take();
        assert_eq!(view["run"]["recipe"], recipe, "{name}");
        let host = &view["sessions"][0]["host"];
        assert!(host["name"].is_null(), "{name} tells its machine: {host}");
        let mut probes: Vec<Value> = elements(&view["probes"]).cloned().collect();
        for probe in &mut probes {
            probe["result"] = world.show(probe["id"].as_str().unwrap())["result"].take();
        }
        let telemetry = elements(&exported["telemetry"]).filter_map(Sample::read).collect();
        let seconds = elements(&exported["seconds"]).cloned().collect();
        Self { view, telemetry, seconds, probes }
    }

    /// The samples of telemetry's `column`, such as `cpu idle`, in trial `ordinal`, counted from 1:
    /// seconds from the window's opening, and the value.
    pub(super) fn samples(&self, ordinal: u64, column: &str) -> Vec<(f64, f64)> {
        let of_trial = self.telemetry.iter().filter(|sample| sample.trial == ordinal);
        of_trial
            .filter(|sample| sample.column == column)
            .map(|sample| (sample.t_s, sample.value))
            .collect()
    }

    /// Returns the growth of the counter `column` in trial `ordinal`, from 1 (per second).
    pub(super) fn rate(&self, ordinal: u64, column: &str) -> f64 {
        let samples = self.samples(ordinal, column);
        let (from, to) = (samples[0], samples[samples.len() - 1]);
        assert!(to.0 > from.0, "trial {ordinal}: one sample of {column}");
        (to.1 - from.1) / (to.0 - from.0)
    }

    /// A table of the runs of a page: when they ran, and for how long they had load.
    pub fn table(runs: &[&str]) -> String {
        let mut table = Table::new(
            "run | load average before | began; last trial (UTC) | trials | minutes of load",
        );
        for name in runs {
            let run = Self::open(name);
            let minute = |time: &Value| time.as_str().unwrap()[..16].replace('T', ", ");
            let last = elements(&run.view["trials"]).last().unwrap();
            let trials = run.treatments().flat_map(|treatment| treatment.loads_s());
            let loads_s: Vec<f64> = trials.collect();
            let load = run.view["sessions"][0]["host"]["load_average"].as_f64();
            table.row([
                format!("[`{}`](runs/{name}.pgdyno)", run.view["run"]["id"].as_str().unwrap()),
                load.map_or("not recorded".to_owned(), |load| format!("{load:.2}")),
                format!(
                    "{}; {}",
                    minute(&run.view["run"]["started_at"]),
                    &minute(&last["started_at"])[12..]
                ),
                count(loads_s.len() as f64),
                format!("{:.0}", loads_s.iter().sum::<f64>() / 60.0),
            ]);
        }
        table.text()
    }

    /// Returns the results of the run's probes, in the order in which they ran.
    pub fn probes(&self) -> &[Value] {
        &self.probes
    }

    /// Returns the run's crash tests, in the order in which they ran.
    pub fn crashes(&self) -> &[Value] {
        self.view["crashes"].as_array().unwrap()
    }

    /// All treatments, in the plan's order.
    pub fn treatments(&self) -> impl Iterator<Item = Treatment<'_>> {
        let all = self.view["treatments"].as_array().unwrap().iter();
        all.map(|of| Treatment { run: self, of })
    }

    /// The one treatment that has these levels.
    pub fn treatment(&self, levels: &[(&str, &str)]) -> Treatment<'_> {
        let mut found = self.treatments().filter(|treatment| {
            levels.iter().all(|(factor, level)| treatment.factor(factor) == *level)
        });
        let one = found.next().unwrap_or_else(|| panic!("no treatment has {levels:?}"));
        assert!(found.next().is_none(), "several treatments have {levels:?}");
        one
    }

    /// How far trials of one treatment differ, by the noise that all share: the standard deviation
    /// of the logarithm of their tps.
    pub fn noise(&self) -> f64 {
        let trials = self.view["trials"].as_array().unwrap();
        let of = |treatment: Treatment<'_>| -> Vec<(u32, f64)> {
            let its = trials.iter().filter(|trial| trial["factors"] == treatment.of["factors"]);
            let value = |trial: &Value| Some((trial["block"].as_u64()?, trial["tps"].as_f64()?));
            its.filter_map(value).map(|(block, tps)| (block.try_into().unwrap(), tps)).collect()
        };
        let each: Vec<_> = self.treatments().map(of).collect();
        let each: Vec<&[(u32, f64)]> = each.iter().map(Vec::as_slice).collect();
        pgdyno_stats::rest(&each, true).unwrap().value.sqrt()
    }

    /// The ratio in the run's own comparison of `a` and `b`, and whether it is that of `b` to `a`.
    fn comparison(&self, a: &Treatment<'_>, b: &Treatment<'_>) -> (&Value, bool) {
        let (a, b) = (&a.of["index"], &b.of["index"]);
        let found = |from: &Value, to: &Value| {
            let mut all = elements(&self.view["comparisons"]);
            all.find(|pair| pair["treatment"] == *from && pair["to"] == *to)
        };
        match (found(a, b), found(b, a)) {
            (Some(pair), _) => (&pair["ratio"], false),
            (None, Some(pair)) => (&pair["ratio"], true),
            (None, None) => panic!("{a} and {b} are not compared"),
        }
    }

    /// The ratio of `a`'s tps to `b`'s with its interval, as the run's own comparison has it; 1 for
    /// a treatment and itself.
    pub fn ratio(&self, a: &Treatment<'_>, b: &Treatment<'_>) -> (f64, Option<[f64; 2]>) {
        if a.of["index"] == b.of["index"] {
            return (1.0, None);
        }
        let (ratio, inverted) = self.comparison(a, b);
        let of = |value: &Value| {
            let value = value.as_f64().unwrap();
            if inverted { 1.0 / value } else { value }
        };
        let ends = ratio["ci95"].as_array().map(|ends| [of(&ends[0]), of(&ends[1])]);
        let sorted = |[a, b]: [f64; 2]| [a.min(b), a.max(b)];
        (of(&ratio["value"]), ends.map(sorted))
    }

    /// Whether the run calls the difference of `a` and `b` significant.
    pub fn is_significant(&self, a: &Treatment<'_>, b: &Treatment<'_>) -> bool {
        self.comparison(a, b).0["told_apart"].as_bool().unwrap()
    }

    /// Returns how many of the run's comparisons are significant, and of how many (counts).
    pub fn comparisons(&self) -> (usize, usize) {
        let all = self.view["comparisons"].as_array().unwrap();
        let significant = all.iter().filter(|pair| pair["ratio"]["told_apart"] == true);
        (significant.count(), all.len())
    }

    /// The fewest and the most clients with which the course over clients that has `treatment` may
    /// be highest.
    pub fn peak(&self, treatment: &Treatment<'_>) -> [String; 2] {
        let has = |course: &&Value| {
            let mut all = elements(&course["treatments"]);
            course["factor"] == "clients" && all.any(|index| *index == treatment.of["index"])
        };
        let course = elements(&self.view["courses"]).find(has).unwrap();
        [0, 1].map(|end| {
            let at = course["peak"][end].as_u64().unwrap() as usize;
            let index = course["treatments"][at].as_u64().unwrap() as usize;
            self.treatments().nth(index).unwrap().factor("clients")
        })
    }

    /// The difference of `a` and `b` that the run finds in 80% of cases, as a part of `b`.
    pub fn detectable(&self, a: &Treatment<'_>, b: &Treatment<'_>) -> f64 {
        self.comparison(a, b).0["detectable"].as_f64().unwrap()
    }

    /// Returns the size of a table or key after the last trial (bytes).
    pub fn size(&self, relation: &str) -> f64 {
        size_of(elements(&self.view["trials"]).last(), relation, "after_bytes")
    }

    /// Returns the size of a table or key before the first trial (bytes).
    pub fn size_before(&self, relation: &str) -> f64 {
        size_of(elements(&self.view["trials"]).next(), relation, "before_bytes")
    }

    /// Returns how often one writer could flush a storage, before the first trial (per second).
    pub fn flushes(&self, storage: &str) -> f64 {
        let mut all = elements(&self.view["fsync"]);
        all.find(|rate| rate["storage"] == storage).unwrap()["per_second"].as_f64().unwrap()
    }

    /// [`Self::ratio`] in percent, as text.
    pub fn compared(&self, a: &Treatment<'_>, b: &Treatment<'_>) -> String {
        match self.ratio(a, b) {
            (value, None) => percent(value),
            (value, Some([from, to])) => {
                format!("{} ({} to {})", percent(value), percent(from), percent(to))
            }
        }
    }

    /// Checks that `text` stands on the page, between the marks of `part`; writes it where that is
    /// asked for.
    pub fn assert_stands(&self, page: &str, part: &str, text: &str) {
        let page = format!("field-reports/{page}");
        docs::write(&page, part, text);
        let stands = std::fs::read_to_string(docs::path(&page)).unwrap();
        let marked = format!("<!-- {part}: begin -->\n{text}<!-- {part}: end -->");
        assert!(
            stands.contains(&marked),
            "{page}: `{part}` is not what the run has; PGDYNO_TRUTH_WRITE=1 writes it:\n{text}"
        );
        let id = self.view["run"]["id"].as_str().unwrap();
        assert!(stands.contains(id), "{page} does not name its run, {id}");
    }
}

/// Returns a size of a table or key in a trial (bytes).
fn size_of(trial: Option<&Value>, relation: &str, key: &str) -> f64 {
    let mut sizes = elements(&trial.unwrap()["sizes"]);
    sizes.find(|size| size["name"] == relation).unwrap()[key].as_f64().unwrap()
}

impl Sample {
    /// A row of an export's table `telemetry`; nothing if the value was not known.
    fn read(row: &Value) -> Option<Self> {
        let text = |key: &str| row[key].as_str().unwrap();
        Some(Self {
            trial: row["trial"].as_u64().unwrap(),
            column: format!("{} {}", text("probe"), text("name")),
            t_s: row["t_s"].as_f64().unwrap(),
            value: row["value"].as_f64()?,
        })
    }
}
