//! The state of a run, added up from its records.

use serde::Serialize;

use pgdyno_model::PlannedTrial;
use pgdyno_model::live::{LiveRun, LoadSecond, Outlook};
use pgdyno_model::units::Epoch;

use super::LiveRecord;

/// A run as its records have it so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveState {
    /// The run; none before its first record.
    pub run: Option<LiveRun>,
    /// State of each planned trial, by its place in the plan.
    pub trials: Vec<LiveTrialState>,
    /// The trial in progress; none between trials.
    pub current: Option<LiveTrial>,
    /// Work without transactions, in words, with how much of it is done (0 to 1); none while load
    /// runs.
    pub working: Option<(String, Option<f64>)>,
    /// Notes and warnings so far; a warning begins with `warning: `.
    pub messages: Vec<String>,
    /// How the comparisons stand.
    pub outlook: Option<Outlook>,
    /// Expected time until the run ends (seconds).
    pub left_s: Option<f64>,
    /// Whether the run was asked to end after the trial in progress.
    pub is_stopping: bool,
    /// How the run ended, and why it could not go on; none while it works.
    pub ended: Option<(String, Option<String>)>,
}

/// The state of a planned trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum LiveTrialState {
    /// Not begun.
    #[default]
    Left,
    /// In progress.
    Running,
    /// Stored. Trials of earlier sessions have no figures here.
    Done {
        /// Transactions per second.
        tps: Option<f64>,
        /// 99th percentile of latency (microseconds).
        latency_us_p99: Option<f64>,
    },
    /// Failed in its last attempt.
    Failed {
        /// Reason of the failure.
        failure: String,
    },
}

/// The trial in progress.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveTrial {
    /// Place in the plan.
    #[serde(flatten)]
    pub planned: PlannedTrial,
    /// Time of the trial's begin.
    pub at: Epoch,
    /// Seconds so far, warm-up included.
    pub seconds: Vec<LoadSecond>,
}

impl LiveState {
    /// Adds the next record. A record that fits nothing before it is ignored.
    pub fn add(&mut self, record: LiveRecord) {
        match record {
            LiveRecord::Begun(run) => self.begin(run),
            LiveRecord::Working { what, share, detail } => {
                let what =
                    detail.map_or_else(|| what.clone(), |detail| format!("{what}: {detail}"));
                self.working = Some((what, share));
            }
            LiveRecord::Note { text } => self.messages.push(text),
            LiveRecord::Warning { text } => self.messages.push(format!("warning: {text}")),
            LiveRecord::Trial { planned, at, left_s } => {
                self.set(planned.ordinal, LiveTrialState::Running);
                self.current = Some(LiveTrial { planned, at, seconds: Vec::new() });
                self.working = None;
                self.left_s = Some(left_s);
            }
            LiveRecord::Second(second) => {
                self.working = None;
                self.left_s = Some(second.left_s);
                if let Some(trial) = &mut self.current {
                    trial.seconds.push(second);
                }
            }
            LiveRecord::TrialDone { ordinal, tps, latency_us_p99, failure, left_s } => {
                let state = match failure {
                    Some(failure) => LiveTrialState::Failed { failure },
                    None => LiveTrialState::Done { tps, latency_us_p99 },
                };
                self.set(ordinal, state);
                self.current = None;
                self.left_s = Some(left_s);
            }
            LiveRecord::Outlook(outlook) => self.outlook = Some(outlook),
            LiveRecord::Stopping => self.is_stopping = true,
            LiveRecord::TakingDown => {
                self.working = Some(("taking down what was made".to_owned(), None));
            }
            LiveRecord::Ended { state, error } => {
                self.current = None;
                self.working = None;
                self.ended = Some((state, error));
            }
        }
    }

    fn begin(&mut self, run: LiveRun) {
        let trials = run.trials.iter().map(|planned| match run.done.contains(&planned.ordinal) {
            true => LiveTrialState::Done { tps: None, latency_us_p99: None },
            false => LiveTrialState::Left,
        });
        *self = Self { trials: trials.collect(), run: Some(run), ..Self::default() };
    }

    /// Sets the state of the trial at place `ordinal`; the plan has its trials in this order.
    fn set(&mut self, ordinal: u32, state: LiveTrialState) {
        if let Some(place) = usize::try_from(ordinal).ok().and_then(|i| self.trials.get_mut(i)) {
            *place = state;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(ordinal: u32) -> PlannedTrial {
        PlannedTrial { ordinal, block: 1, treatment: 0, repeat: ordinal + 1 }
    }

    fn begun(trials: u32, done: &[u32]) -> LiveRecord {
        LiveRecord::Begun(LiveRun {
            schema: LiveRun::SCHEMA.into(),
            run: "try".into(),
            recipe: "try".into(),
            question: None,
            started_at: Epoch(0),
            owner: pgdyno_model::facts::Owner {
                pid: 1,
                started_ticks: 2,
                boot_id: "b".into(),
                host: None,
            },
            treatments: vec!["all".into()],
            trials: (0..trials).map(planned).collect(),
            done: done.to_vec(),
            warm_up_s: 1.0,
            window_s: Some(5.0),
            is_open_ended: false,
        })
    }

    #[test]
    fn a_run_is_added_up_and_every_record_survives_its_line() {
        let second = LoadSecond { tps: 12.5, left_s: 9.0, ..LoadSecond::default() };
        let records = [
            begun(3, &[0]),
            LiveRecord::Trial { planned: planned(1), at: Epoch(5), left_s: 10.0 },
            LiveRecord::Second(second.clone()),
            LiveRecord::TrialDone {
                ordinal: 1,
                tps: Some(12.5),
                latency_us_p99: None,
                failure: None,
                left_s: 5.0,
            },
            LiveRecord::Trial { planned: planned(2), at: Epoch(6), left_s: 5.0 },
            LiveRecord::Second(second),
        ];
        let mut state = LiveState::default();
        for record in records {
            let line = serde_json::to_string(&record).unwrap();
            assert!(!line.contains('\n'));
            state.add(serde_json::from_str(&line).unwrap());
        }
        let tps = |trial: &LiveTrialState| match trial {
            LiveTrialState::Done { tps, .. } => *tps,
            _ => None,
        };
        assert_eq!(state.trials.iter().map(tps).collect::<Vec<_>>(), [None, Some(12.5), None]);
        assert_eq!(state.trials[2], LiveTrialState::Running);
        assert_eq!(state.current.as_ref().map(|t| t.seconds.len()), Some(1));
        assert_eq!(state.left_s, Some(9.0));
    }

    /// Holds the front end, which adds up records itself, to the same file. PGDYNO_SCHEMA_WRITE
    /// writes the states into it.
    #[test]
    fn the_sums_that_the_front_end_is_held_to_are_these() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/live/sums.json");
        let committed: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let mut cases = committed.clone();
        for case in cases.as_array_mut().unwrap() {
            let mut state = LiveState::default();
            for record in case["records"].as_array().unwrap() {
                state.add(serde_json::from_value(record.clone()).unwrap());
            }
            case["state"] = serde_json::to_value(state).unwrap();
        }
        if std::env::var_os("PGDYNO_SCHEMA_WRITE").is_some() {
            let text = serde_json::to_string_pretty(&cases).unwrap();
            std::fs::write(path, text + "\n").unwrap();
        } else {
            assert_eq!(cases, committed);
        }
    }

    #[test]
    fn records_that_fit_nothing_change_nothing() {
        let mut state = LiveState::default();
        state.add(LiveRecord::Second(LoadSecond::default()));
        state.add(LiveRecord::Trial { planned: planned(7), at: Epoch(0), left_s: 1.0 });
        assert_eq!(state.trials, []);
    }
}
