//! The cost of observation: CPU time of the sampling threads and of their backends.

use std::sync::Arc;

use pgdyno_model::telemetry::{Column, Kind};

use super::context::TelemetryContext;
use super::cost::{ObserverCost, thread_cpu};
use super::probe::{Probe, ProbeError, column, float};

struct Observer {
    cost: Arc<ObserverCost>,
    columns: Vec<Column>,
    missing: Option<String>,
}

pub(super) fn make(context: &TelemetryContext) -> Result<Option<Box<dyn Probe>>, ProbeError> {
    let columns = ["sampler_cpu", "backends_cpu"]
        .into_iter()
        .map(|n| column(n, "s", Kind::Counter))
        .collect();
    Ok(Some(Box::new(Observer { cost: Arc::clone(&context.cost), columns, missing: None })))
}

impl Probe for Observer {
    fn name(&self) -> &'static str {
        "observer"
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    // Runs in the sampler's thread, whose CPU time it reads.
    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        let others = self.cost.other_threads_cpu();
        let backends = match self.cost.backends_cpu() {
            Ok(time) => Some(time.as_secs_f64()),
            Err(why) => {
                self.missing =
                    Some(format!("the CPU time of the server's backends is not known: {why}"));
                None
            }
        };
        Ok(vec![Some(thread_cpu().as_secs_f64() + float(others) / 1e9), backends])
    }

    fn missing_data(&self) -> Option<String> {
        self.missing.clone()
    }
}
