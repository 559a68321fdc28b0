//! Runs assignments on all hosts at once, and merges each store that comes back.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use pgdyno_model::lab_host::LabHost;
use pgdyno_model::record::SessionEnd;
use pgdyno_store::Merge;

use super::connection::{Handle, Message, converse};
use super::{Assignment, HostError, Reply};
use pgdyno_provision::stores::{open_store, open_store_for_reading};

/// Interval at which the stop flag is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Time that hosts have to end after a signal.
const GRACE: Duration = Duration::from_millis(1_900);

/// One host, and the outcome of its run.
#[derive(Debug)]
pub struct HostResult {
    /// The host, as `--hosts` names it.
    pub host: LabHost,
    /// The run's id in the store here, and how the run ended.
    pub run: Result<(String, SessionEnd), HostError>,
}

/// Runs each assignment on its host, all at once, and merges each run that is over into the store
/// at `store`. `say` receives each line of progress after the name of its host. Stores that come
/// back lie in `folder` until they are merged. A signal interrupts all hosts.
pub fn run_on_hosts(
    assignments: &[(LabHost, Assignment)],
    store: &Path,
    folder: &Path,
    say: &dyn Fn(&str, &str),
    stop: &Arc<AtomicBool>,
) -> Vec<HostResult> {
    let (tell, messages) = mpsc::channel();
    let mut handles = Vec::new();
    for (number, (host, assignment)) in assignments.iter().enumerate() {
        let handle = Handle::default();
        handles.push(handle.clone());
        let (host, assignment, tell) = (host.clone(), assignment.clone(), tell.clone());
        let file = folder.join(format!("{number}.sqlite3"));
        // Not scoped: a connection that hangs must not outlast a signal.
        std::thread::spawn(move || converse(&host, &assignment, file, &handle, &tell, number));
    }
    let mut results: Vec<Option<Result<(String, SessionEnd), HostError>>> =
        assignments.iter().map(|_| None).collect();
    let mut open: BTreeSet<usize> = (0..assignments.len()).collect();
    let mut limit = None;
    while !open.is_empty() {
        if limit.is_none() && stop.load(Ordering::Relaxed) {
            handles.iter().for_each(Handle::stop);
            limit = Some(Instant::now() + GRACE);
        }
        if limit.is_some_and(|limit| Instant::now() >= limit) {
            handles.iter().for_each(Handle::kill);
            break;
        }
        let (number, message) = match messages.recv_timeout(LOOK) {
            Ok(received) => received,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let host = &assignments[number].0;
        match message {
            Message::Line(line) => say(&host.name, &line),
            Message::Gone => {
                open.remove(&number);
            }
            Message::Ended(ended) => {
                let result = ended.and_then(|(reply, file)| keep(host, reply, file, store, stop));
                match &result {
                    Ok(_) => handles[number].confirm(),
                    Err(_) => handles[number].stop(),
                }
                results[number] = Some(result);
            }
        }
    }
    let results = assignments.iter().zip(results);
    results
        .map(|((host, _), run)| HostResult {
            host: host.clone(),
            run: run.unwrap_or(Err(HostError::Interrupted)),
        })
        .collect()
}

/// Merges the store in `file` into the one at `store`, if the host's run is over.
fn keep(
    host: &LabHost,
    reply: Reply,
    file: Option<std::path::PathBuf>,
    store: &Path,
    stop: &Arc<AtomicBool>,
) -> Result<(String, SessionEnd), HostError> {
    let (Some(run), Some(end), Some(file)) = (reply.run, reply.end, file) else {
        return Err(match reply.error {
            Some(error) => HostError::Run(error),
            None => HostError::Interrupted,
        });
    };
    let source = open_store_for_reading(&file).map_err(HostError::Merge)?;
    let mut target = open_store(store).map_err(HostError::Merge)?;
    target.stop_by(Arc::clone(stop))?;
    let mut merge = Merge::default();
    merge.add_store_of(Some(&target), &source, &host.to_string())?;
    merge.write(&mut target)?;
    Ok((run, end))
}
