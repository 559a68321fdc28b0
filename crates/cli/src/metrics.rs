//! `run --metrics ADDRESS`: serves the figures of the run for Prometheus while it works.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pgdyno_model::progress::{Event, Progress};
use pgdyno_report::live::LiveRecord;
use pgdyno_report::metrics::RunMetrics;

use crate::error::CommandError;

/// The figures of a run, served while it works.
pub(crate) struct Metrics {
    figures: Arc<Mutex<RunMetrics>>,
}

/// Passes progress events on, and adds them to [`Metrics`].
pub(crate) struct Measured<'a> {
    inner: &'a dyn Progress,
    metrics: Option<&'a Metrics>,
}

impl Metrics {
    /// Listens on `address`, and says where.
    ///
    /// # Errors
    /// The address cannot be listened on.
    #[cfg(feature = "serve")]
    pub(crate) fn serve(address: SocketAddr) -> Result<Self, CommandError> {
        use std::io::ErrorKind;

        use pgdyno_report::metrics::CONTENT_TYPE;

        let figures = Arc::new(Mutex::new(RunMetrics::default()));
        let served = Arc::clone(&figures);
        let bound =
            pgdyno_web::serve_metrics(address, CONTENT_TYPE, move || lock(&served).render())
                .map_err(|source| {
                    let help = match source.kind() {
                        ErrorKind::AddrInUse => {
                            "name another port; with port 0 the system chooses one"
                        }
                        _ => "name an address of this machine and a port above 1023",
                    };
                    let message = format!("cannot serve metrics at {address}");
                    CommandError::with_source(message, source).with_help(help)
                })?;
        crate::output::hint(&format!("metrics: http://{bound}/metrics"));
        Ok(Self { figures })
    }

    /// Says that this build has no server.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(feature = "serve"))]
    pub(crate) fn serve(_: SocketAddr) -> Result<Self, CommandError> {
        Err(CommandError::without_server())
    }
}

impl<'a> Measured<'a> {
    /// Wraps `inner`.
    pub(crate) fn new(inner: &'a dyn Progress, metrics: Option<&'a Metrics>) -> Self {
        Self { inner, metrics }
    }
}

impl Progress for Measured<'_> {
    fn event(&self, event: &Event) {
        self.inner.event(event);
        if let Some(metrics) = self.metrics {
            lock(&metrics.figures).add(LiveRecord::new(event));
        }
    }
}

/// Reads ADDRESS: `9187` and `:9187` are ports on the loopback interface, else `IP:PORT`.
pub(crate) fn parse_address(given: &str) -> Result<SocketAddr, String> {
    let port = given.strip_prefix(':').unwrap_or(given);
    if let Ok(port) = port.parse() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    given.parse().map_err(|_| "give a port, or IP:PORT".to_owned())
}

fn lock(figures: &Mutex<RunMetrics>) -> MutexGuard<'_, RunMetrics> {
    figures.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_the_loopback_interface() {
        for given in ["9187", ":9187", "127.0.0.1:9187"] {
            assert_eq!(parse_address(given), Ok("127.0.0.1:9187".parse().unwrap()));
        }
        assert_eq!(parse_address("[::]:1"), Ok("[::]:1".parse().unwrap()));
        assert!(parse_address("localhost").is_err() && parse_address("70000").is_err());
    }
}
