//! `run --metrics ADDRESS`: serves the figures of the run for Prometheus while it works.
//!
//! One thread accepts connections. Each is answered by a thread of its own, within two seconds, and
//! at most [`MOST_AT_ONCE`] at a time: a client that is slow keeps neither the run nor others
//! waiting. The endpoint ends with the process.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use pgdyno_model::progress::{Event, Progress};
use pgdyno_model::units::Epoch;
use pgdyno_results::report::metrics::{CONTENT_TYPE, RunMetrics};
use pgdyno_results::report::progress::live_record;

use crate::error::CommandError;
use crate::output::hint;

/// Connections that are answered at the same time (count).
const MOST_AT_ONCE: usize = 8;
/// The longest request that is read (bytes).
const LONGEST_REQUEST: usize = 8 << 10;
/// How long a client has to ask and to take the answer.
const LIMIT: Duration = Duration::from_secs(2);

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
    /// [`CommandError::Metrics`]: the address cannot be listened on.
    pub(crate) fn serve(address: SocketAddr) -> Result<Self, CommandError> {
        let failed = |source| CommandError::Metrics { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let figures = Arc::new(Mutex::new(RunMetrics::default()));
        let served = Arc::clone(&figures);
        std::thread::Builder::new()
            .name("metrics".into())
            .spawn(move || accept(&listener, &served))
            .map_err(failed)?;
        hint(&format!("metrics: http://{bound}/metrics"));
        Ok(Self { figures })
    }
}

impl<'a> Measured<'a> {
    /// Wraps `inner`.
    pub(crate) fn new(inner: &'a dyn Progress, metrics: Option<&'a Metrics>) -> Self {
        Self { inner, metrics }
    }
}

impl Progress for Measured<'_> {
    fn event(&self, event: &Event<'_>) {
        self.inner.event(event);
        if let Some(metrics) = self.metrics
            && let Some(record) = live_record(event, Epoch::of(SystemTime::now()))
        {
            lock(&metrics.figures).add(record);
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

fn accept(listener: &TcpListener, figures: &Arc<Mutex<RunMetrics>>) {
    let working = Arc::new(AtomicUsize::new(0));
    for connection in listener.incoming() {
        let Ok(connection) = connection else {
            // Out of descriptors: they come back.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        if working.fetch_add(1, Ordering::Relaxed) >= MOST_AT_ONCE {
            working.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (figures, done) = (Arc::clone(figures), Arc::clone(&working));
        let spawned = std::thread::Builder::new().name("scrape".into()).spawn(move || {
            // A client that goes away needs no answer.
            let _ = answer(connection, &figures);
            done.fetch_sub(1, Ordering::Relaxed);
        });
        if spawned.is_err() {
            working.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Reads one request and answers it, then closes the connection.
fn answer(mut connection: TcpStream, figures: &Mutex<RunMetrics>) -> io::Result<()> {
    let until = Instant::now() + LIMIT;
    connection.set_write_timeout(Some(LIMIT))?;
    let (status, body) = match read_request(&mut connection, until)?.as_deref() {
        Some("GET /metrics") => ("200 OK", lock(figures).render()),
        Some(line) if line.starts_with("GET ") => {
            ("404 Not Found", "the metrics are at /metrics\n".to_owned())
        }
        Some(_) => ("405 Method Not Allowed", "only GET is answered\n".to_owned()),
        None => ("431 Request Header Fields Too Large", String::new()),
    };
    let kind = if status.starts_with("200") { CONTENT_TYPE } else { "text/plain; charset=utf-8" };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    );
    connection.write_all(head.as_bytes())?;
    connection.write_all(body.as_bytes())
}

/// Reads a request up to its empty line. Returns its method and path without a query; none if it is
/// too long.
fn read_request(connection: &mut TcpStream, until: Instant) -> io::Result<Option<String>> {
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        connection.set_read_timeout(Some(left))?;
        match connection.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => request.extend_from_slice(&piece[..read]),
        }
        if request.len() > LONGEST_REQUEST {
            return Ok(None);
        }
    }
    let request = String::from_utf8_lossy(&request);
    let mut words = request.split_ascii_whitespace();
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let path = target.split('?').next().unwrap_or(target);
    Ok(Some(format!("{method} {path}")))
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
