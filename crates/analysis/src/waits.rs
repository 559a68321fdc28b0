//! Where a treatment's time went: what its backends were seen doing or waiting for.

use std::collections::BTreeMap;

use pgdyno_model::telemetry::Table;

use super::rates::{column, growth};
use super::view::WaitView;

/// Sightings over all completed trials of a treatment.
#[derive(Default)]
pub(super) struct Waits {
    polls: f64,
    events: BTreeMap<String, f64>,
}

impl Waits {
    pub(super) fn add(&mut self, tables: &[Table]) {
        let Some(table) = tables.iter().find(|t| t.probe == "wait_events") else { return };
        let Some(polls) = column(table, "polls").and_then(|polls| growth(table, polls)) else {
            return;
        };
        self.polls += polls;
        for (i, column) in table.columns.iter().enumerate() {
            let Some(event) = column.name.strip_prefix("load.") else { continue };
            *self.events.entry(event.to_owned()).or_default() += growth(table, i).unwrap_or(0.0);
        }
    }

    pub(super) fn view(&self) -> Vec<WaitView> {
        let all: f64 = self.events.values().sum();
        if all <= 0.0 || self.polls <= 0.0 {
            return Vec::new();
        }
        let view = |(event, count): (&String, &f64)| WaitView {
            event: event.clone(),
            share: count / all,
            backends: count / self.polls,
        };
        let mut views: Vec<WaitView> =
            self.events.iter().filter(|(_, count)| **count > 0.0).map(view).collect();
        views.sort_by(|a, b| b.share.total_cmp(&a.share));
        views
    }
}
