//! The cost of observation: CPU time of the sampling threads and of their backends. Beside it, CPU
//! time of all else in this process, which is the load generator's.

use std::sync::Arc;

use pgdyno_model::telemetry::{Column, Kind};

use super::context::TelemetryContext;
use super::cost::{ObserverCost, process_cpu, thread_cpu};
use super::probe::{Probe, ProbeError, ProbeResult, column, float};

struct Observer {
    cost: Arc<ObserverCost>,
    columns: Vec<Column>,
    /// CPU time of the generator as last sampled (seconds).
    generator: f64,
    missing: Option<String>,
}

pub(super) fn make(context: &TelemetryContext) -> ProbeResult {
    let columns = ["sampler_cpu", "backends_cpu", "generator_cpu"]
        .into_iter()
        .map(|n| column(n, "s", Kind::Counter))
        .collect();
    let cost = Arc::clone(&context.cost);
    Ok(Some(Box::new(Observer { cost, columns, generator: 0.0, missing: None })))
}

impl Probe for Observer {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    // Runs in the sampler's thread, whose CPU time it reads.
    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        let sampler = thread_cpu().as_secs_f64() + float(self.cost.other_threads_cpu()) / 1e9;
        // Other sampling threads report now and then: what they report at once must not turn the
        // generator's time back.
        self.generator = self.generator.max(process_cpu().as_secs_f64() - sampler);
        let backends = match self.cost.backends_cpu() {
            Ok(time) => Some(time.as_secs_f64()),
            Err(why) => {
                self.missing =
                    Some(format!("the CPU time of the server's backends is not known: {why}"));
                None
            }
        };
        Ok(vec![Some(sampler), backends, Some(self.generator)])
    }

    fn missing_data(&self) -> Option<String> {
        self.missing.clone()
    }
}
