//! A run in progress.

use pgdyno_model::PlannedTrial;
use pgdyno_model::facts::Owner;
use pgdyno_model::live::LiveRun;
use pgdyno_model::units::Epoch;

/// The run `id` of one trial, by the process `owner`.
pub fn live_run(id: &str, owner: Owner) -> LiveRun {
    LiveRun {
        schema: LiveRun::SCHEMA.into(),
        run: id.into(),
        recipe: "try".into(),
        question: None,
        started_at: Epoch(1),
        owner,
        treatments: vec!["all".into()],
        trials: vec![PlannedTrial { ordinal: 0, block: 1, treatment: 0, repeat: 1 }],
        done: Vec::new(),
        warm_up_s: 1.0,
        window_s: None,
        is_open_ended: false,
    }
}
