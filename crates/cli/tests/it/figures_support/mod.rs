//! Runs that lie beside the docs' pages, and tables of their figures.

pub mod bars;

use pgdyno_test_support::median;
use pgdyno_text::format;
use serde_json::Value;

use crate::support::{docs, elements};

/// A run as `pgdyno export --format json --redact` has it under `run`, with some of its telemetry.
pub struct Run {
    view: Value,
}

impl Run {
    /// Reads docs/field-reports/runs/`name`.json.
    pub fn open(name: &str) -> Self {
        let kept =
            format!("{}/../../docs/field-reports/runs/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&kept).unwrap_or_else(|e| panic!("{kept}: {e}"));
        let view: Value = serde_json::from_str(&text).unwrap();
        let recipe = view["run"]["recipe"].as_str().unwrap();
        assert!(name.split_once('-').unwrap().1.starts_with(recipe), "{name} is of {recipe}");
        Self { view }
    }

    /// The samples of telemetry's `column` in trial `ordinal`, counted from 1: seconds from the
    /// window's opening, and the value.
    fn samples(&self, ordinal: u64, column: &str) -> Vec<(f64, f64)> {
        let all = self.view["telemetry"].as_array().unwrap().iter();
        all.filter(|sample| sample[0] == ordinal && sample[1] == column)
            .filter_map(|sample| Some((sample[2].as_f64().unwrap(), sample[3].as_f64()?)))
            .collect()
    }

    /// Returns the growth of the counter `column` in trial `ordinal`, from 1 (per second).
    fn rate(&self, ordinal: u64, column: &str) -> f64 {
        let samples = self.samples(ordinal, column);
        let (from, to) = (samples[0], samples[samples.len() - 1]);
        assert!(to.0 > from.0, "trial {ordinal}: one sample of {column}");
        (to.1 - from.1) / (to.0 - from.0)
    }

    /// Returns the load average over a minute when the first trial began.
    pub fn load_average(&self) -> f64 {
        let mut all = self.view["telemetry"].as_array().unwrap().iter();
        all.find(|sample| sample[1] == "loadavg1").unwrap()[3].as_f64().unwrap()
    }

    /// Returns the results of the run's probes, in the order in which they ran.
    pub fn probes(&self) -> &[Value] {
        self.view["probes"].as_array().unwrap()
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

    /// The ratio of `a`'s tps to `b`'s with its interval, as the run's own comparison has it.
    pub fn ratio(&self, a: &Treatment<'_>, b: &Treatment<'_>) -> (f64, Option<[f64; 2]>) {
        let (a, b) = (&a.of["index"], &b.of["index"]);
        let all = self.view["comparisons"].as_array().unwrap();
        let found = |from: &Value, to: &Value| {
            all.iter().find(|pair| pair["treatment"] == *from && pair["to"] == *to)
        };
        let (straight, reverse) = (found(a, b), found(b, a));
        let (pair, inverted) = match (straight, reverse) {
            (Some(pair), _) => (pair, false),
            (None, Some(pair)) => (pair, true),
            (None, None) => panic!("{a} and {b} are not compared"),
        };
        let of = |value: &Value| {
            let value = value.as_f64().unwrap();
            if inverted { 1.0 / value } else { value }
        };
        let ratio = &pair["ratio"];
        let ends = ratio["ci95"].as_array().map(|ends| [of(&ends[0]), of(&ends[1])]);
        let sorted = |[a, b]: [f64; 2]| [a.min(b), a.max(b)];
        (of(&ratio["value"]), ends.map(sorted))
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
        let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
        let stands = std::fs::read_to_string(path).unwrap();
        let marked = format!("<!-- {part}: begin -->\n{text}<!-- {part}: end -->");
        assert!(
            stands.contains(&marked),
            "{page}: `{part}` is not what the run has; PGDYNO_TRUTH_WRITE=1 writes it:\n{text}"
        );
        let id = self.view["run"]["id"].as_str().unwrap();
        assert!(stands.contains(id), "{page} does not name its run, {id}");
    }
}

/// A treatment of a run.
pub struct Treatment<'a> {
    run: &'a Run,
    of: &'a Value,
}

impl Treatment<'_> {
    /// The level of a factor, as text.
    pub fn factor(&self, name: &str) -> String {
        match &self.of["factors"][name] {
            Value::String(level) => level.clone(),
            level => level.to_string(),
        }
    }

    /// Returns the treatment's completed trials, in the order of repeats.
    fn completed(&self) -> impl Iterator<Item = &Value> {
        let all = self.run.view["trials"].as_array().unwrap().iter();
        all.filter(|trial| trial["treatment"] == self.of["index"] && trial["state"] == "completed")
    }

    /// Returns the tps of each completed trial, in the order of repeats.
    pub fn trials(&self) -> Vec<f64> {
        let tps = |trial: &Value| {
            trial["transactions"].as_f64().unwrap() / trial["measured_s"].as_f64().unwrap()
        };
        self.completed().map(tps).collect()
    }

    /// The median of the trials' tps.
    pub fn median(&self) -> f64 {
        median(&self.trials())
    }

    /// Returns the places of the completed trials in the run, from 1.
    fn ordinals(&self) -> impl Iterator<Item = u64> {
        self.completed().map(|trial| trial["ordinal"].as_u64().unwrap() + 1)
    }

    /// Returns the median over the trials of the counter `column`'s growth (per second).
    pub fn rate(&self, column: &str) -> f64 {
        median(&self.ordinals().map(|at| self.run.rate(at, column)).collect::<Vec<_>>())
    }

    /// The median of all samples of the gauge `column`.
    pub fn gauge(&self, column: &str) -> f64 {
        let samples = self.ordinals().flat_map(|at| self.run.samples(at, column));
        median(&samples.map(|(_, value)| value).collect::<Vec<_>>())
    }

    /// The medians of the parts of CPU time that were idle (`idle` of telemetry's `cpu`) and that
    /// waited for the disk (`iowait`), in percent of all CPUs.
    pub fn idle_and_waiting(&self) -> String {
        let cpus = self.run.view["sessions"][0]["host"]["cpus"].as_f64().unwrap();
        let share = |column: &str| 100.0 * self.rate(column) / cpus;
        format!("{:.0}, {:.0}", share("idle"), share("iowait"))
    }

    /// The part of the time in which the machine's disk had a request, in percent.
    pub fn disk_busy(&self) -> String {
        let milliseconds_a_second = self.rate("vda.io_ticks");
        format!("{:.0}%", milliseconds_a_second / 10.0)
    }

    /// The tps of each whole minute of its first trial.
    pub fn minutes(&self) -> Vec<f64> {
        let trial = self.ordinals().next().unwrap();
        let all = self.run.view["minutes"].as_array().unwrap().iter();
        all.filter(|minute| minute[0] == trial)
            .map(|minute| (minute[2].as_f64().unwrap(), minute[3].as_f64().unwrap()))
            .filter(|(length_s, _)| *length_s > 59.0)
            .map(|(length_s, transactions)| transactions / length_s)
            .collect()
    }

    /// Returns the growth of the counter `column`, all trials together.
    pub fn gained(&self, column: &str) -> f64 {
        let gain = |at| {
            let samples = self.run.samples(at, column);
            samples[samples.len() - 1].1 - samples[0].1
        };
        self.ordinals().map(gain).sum()
    }

    /// Returns the treatment's crash test.
    pub fn crash(&self) -> &Value {
        self.run.crashes().iter().find(|crash| crash["name"] == self.of["label"]).unwrap()
    }

    /// Each statement with its mean and standard deviation, in µs.
    pub fn statements(&self) -> Vec<(&str, f64, f64)> {
        let all = self.of["statements"].as_array().unwrap().iter();
        all.map(|statement| {
            let latency = |key: &str| statement["latency_us"][key].as_f64().unwrap();
            (statement["text"].as_str().unwrap(), latency("mean"), latency("stddev"))
        })
        .collect()
    }

    /// The median, and the lowest and highest trial.
    pub fn median_and_range(&self) -> String {
        let tps = self.trials();
        let lowest = tps.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = tps.iter().copied().fold(0.0, f64::max);
        format!("{} ({}–{})", count(self.median()), count(lowest), count(highest))
    }

    /// The tps of every trial, parted by dots.
    pub fn each(&self) -> String {
        self.trials().into_iter().map(count).collect::<Vec<_>>().join(" · ")
    }

    /// The mean tps of the trials, and its interval.
    pub fn mean(&self) -> (f64, Option<[f64; 2]>) {
        let tps = &self.of["tps"];
        let ends = tps["ci95"].as_array();
        let ends = ends.map(|ends| [ends[0].as_f64().unwrap(), ends[1].as_f64().unwrap()]);
        (tps["mean"].as_f64().unwrap(), ends)
    }

    /// The mean of the trials, with half the width of its interval in percent.
    pub fn mean_with_interval(&self) -> String {
        let (mean, Some([from, to])) = self.mean() else { return count(self.mean().0) };
        let half = (to - from) / 2.0;
        format!("{} ±{:.1}%", count(mean), 100.0 * half / mean)
    }

    /// A percentile of its latency, in µs.
    pub fn latency(&self, percentile: &str) -> f64 {
        self.of["latency_us"][percentile].as_f64().unwrap()
    }

    /// A figure of the treatment.
    pub fn number(&self, key: &str) -> f64 {
        self.of[key].as_f64().unwrap_or_else(|| panic!("{}: no {key}", self.of["label"]))
    }
}

/// Checks that docs/field-reports/images/`name`.svg is `picture`, and that `page` shows it; writes
/// it where that is asked for.
pub fn assert_drawn(page: &str, name: &str, picture: &str) {
    let folder = format!("{}/../../docs/field-reports", env!("CARGO_MANIFEST_DIR"));
    let file = format!("{folder}/images/{name}.svg");
    if std::env::var_os("PGDYNO_TRUTH_WRITE").is_some() {
        std::fs::write(&file, picture).unwrap();
    }
    let drawn = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(drawn == picture, "{name}.svg is not what the run has; PGDYNO_TRUTH_WRITE=1 draws it");
    let shown = std::fs::read_to_string(format!("{folder}/{page}")).unwrap();
    assert!(shown.contains(&format!("(images/{name}.svg)")), "{page} does not show {name}.svg");
}

/// Operations a second of a probe's test.
pub fn operations(probe: &Value, group: &str, test: &str) -> f64 {
    let mut all = elements(&probe["result"]["tests"]);
    let found = all.find(|one| one["group"] == group && one["name"] == test).unwrap();
    let measured = &found["outcome"]["measured"];
    measured["operations"].as_f64().unwrap() / measured["seconds"].as_f64().unwrap()
}

/// A table as the pages have them.
pub struct Table {
    text: String,
}

impl Table {
    /// A table with this head, its cells parted by ` | `.
    pub fn new(head: &str) -> Self {
        let columns = head.split(" | ").count();
        Self { text: format!("| {head} |\n|{}\n", "---|".repeat(columns)) }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        self.text += &format!("| {} |\n", cells.join(" | "));
    }

    /// The table, with a line's end after each row.
    pub fn text(&self) -> String {
        self.text.clone()
    }
}

/// A number without decimals, its thousands parted by commas.
pub fn count(value: f64) -> String {
    format::count(value.round() as u64)
}

/// A ratio, with two decimals.
pub fn ratio(value: f64) -> String {
    format!("{value:.2}")
}

/// A part of one, in percent.
pub fn percent(value: f64) -> String {
    format!("{:.0}%", 100.0 * value)
}

/// Microseconds, in milliseconds.
pub fn milliseconds(us: f64) -> String {
    format!("{:.2}", us / 1000.0)
}
