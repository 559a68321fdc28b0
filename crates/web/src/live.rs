//! Runs in progress: one reader of a run's live file for all who watch it.
//!
//! The first watcher of a run starts a thread that follows the file and adds the records up. Each
//! watcher is sent the sum so far, then every record. One that is too slow to take them is sent the
//! sum again; nobody waits for it. The thread ends once nobody watches.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use futures_util::Stream;
use futures_util::stream::unfold;
use pgdyno_lab::live::Follower;
use pgdyno_model::json;
use pgdyno_report::json::for_browser;
use pgdyno_report::live::{LiveRecord, LiveState};
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use crate::response::ApiError;

/// Between two looks at a live file.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Between two comments that keep a silent connection open.
const COMMENT_EVERY: Duration = Duration::from_secs(15);

/// Records that a watcher may lag behind (count).
const LAG_MOST: usize = 256;

/// A run as its records have it so far.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LiveDocument<'a> {
    /// The sum of the records.
    #[serde(flatten)]
    state: &'a LiveState,
    /// Whether the run's process is gone without a last record.
    has_died: bool,
}

impl json::Document for LiveDocument<'_> {
    const SCHEMA: &'static str = "pgdyno.serve-live/1";
}

/// The runs that are watched, by their ids.
#[derive(Default)]
pub(crate) struct Watched(Mutex<HashMap<String, Weak<Feed>>>);

/// A run that is watched.
pub(crate) struct Feed {
    sum: Mutex<Sum>,
    events: broadcast::Sender<Bytes>,
}

#[derive(Default)]
struct Sum {
    state: LiveState,
    has_died: bool,
}

impl Watched {
    /// Returns the feed of run `run` of the store at `store`. The first call reads the file up to
    /// its end and starts the thread that follows it.
    ///
    /// # Errors
    /// The run has no live file, the file cannot be read, or no thread can be started.
    pub(crate) fn feed(
        &self,
        store: &Path,
        run: &str,
        ending: watch::Receiver<bool>,
    ) -> Result<Arc<Feed>, ApiError> {
        let mut feeds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = feeds.get(run).and_then(Weak::upgrade) {
            return Ok(feed);
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let mut follower = Follower::open(store, run)?;
        let (events, _) = broadcast::channel(LAG_MOST);
        let feed = Arc::new(Feed { sum: Mutex::default(), events });
        while feed.take(&mut follower)? > 0 {}
        let followed = Arc::downgrade(&feed);
        let failed = |source| {
            let what = format!("cannot watch run {run}: no thread can be started: {source}");
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, what)
        };
        std::thread::Builder::new()
            .name("live".to_owned())
            .spawn(move || follow(&mut follower, &followed, &ending))
            .map_err(failed)?;
        feeds.insert(run.to_owned(), Arc::downgrade(&feed));
        Ok(feed)
    }
}

/// Follows the file until nobody watches it or the server ends.
fn follow(follower: &mut Follower, feed: &Weak<Feed>, ending: &watch::Receiver<bool>) {
    while !*ending.borrow() {
        std::thread::sleep(LOOK_EVERY);
        let Some(feed) = feed.upgrade() else { return };
        // A file that cannot be read now is tried again: it may be replaced at this moment.
        let _ = feed.take(follower);
    }
}

impl Feed {
    /// Takes the records that are new, and looks whether the process died. Returns how many
    /// records there were.
    fn take(&self, follower: &mut Follower) -> Result<usize, ApiError> {
        // In this order: what a process wrote before it died is read.
        let is_alive = follower.is_alive();
        let events = follower.poll()?;
        let count = events.len();
        let mut sum = self.sum();
        for record in events.iter().map(LiveRecord::new) {
            self.send(&event("record", &record));
            if matches!(record, LiveRecord::Begun(_)) {
                sum.has_died = false;
            }
            sum.state.add(record);
        }
        if count == 0 && !is_alive && sum.state.ended.is_none() && !sum.has_died {
            sum.has_died = true;
            self.send(&event("died", &serde_json::json!({})));
        }
        Ok(count)
    }

    fn send(&self, event: &Bytes) {
        // Without a watcher there is nobody to be told.
        let _ = self.events.send(event.clone());
    }

    fn sum(&self) -> MutexGuard<'_, Sum> {
        self.sum.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the sum so far as events, and what comes after it.
    fn join(&self) -> (VecDeque<Bytes>, broadcast::Receiver<Bytes>) {
        // The lock is held: no record comes between the sum and what follows.
        let sum = self.sum();
        let events = self.events.subscribe();
        let document = LiveDocument { state: &sum.state, has_died: sum.has_died };
        let text = json::compact(&document).unwrap_or_default();
        let mut first = VecDeque::from([text_event("state", &text)]);
        if sum.has_died {
            first.push_back(event("died", &serde_json::json!({})));
        }
        (first, events)
    }
}

/// Returns what a watcher of `feed` is sent, until the server ends.
pub(crate) fn events(
    feed: Arc<Feed>,
    ending: watch::Receiver<bool>,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let (first, events) = feed.join();
    unfold((feed, first, events, ending), |(feed, mut first, mut events, mut ending)| async move {
        loop {
            if let Some(event) = first.pop_front() {
                return Some((Ok(event), (feed, first, events, ending)));
            }
            tokio::select! {
                () = ended(&mut ending) => return None,
                () = tokio::time::sleep(COMMENT_EVERY) => {
                    first.push_back(Bytes::from_static(b": nothing new\n\n"));
                }
                event = events.recv() => match event {
                    Ok(event) => first.push_back(event),
                    Err(RecvError::Lagged(_)) => (first, events) = feed.join(),
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    })
}

/// Waits until the server ends.
pub(crate) async fn ended(ending: &mut watch::Receiver<bool>) {
    // The value behind the lock must not be held across a wait. An error: the server is gone.
    let _ = ending.wait_for(|is_ending| *is_ending).await.map(|_| ());
}

/// Returns an event of a stream of events.
fn event(name: &str, data: &impl Serialize) -> Bytes {
    text_event(name, &serde_json::to_string(data).unwrap_or_default())
}

/// Returns an event whose data are `json`, which has no line breaks.
fn text_event(name: &str, json: &str) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {}\n\n", for_browser(json)))
}
