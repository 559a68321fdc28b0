//! Shows what a long command does, on standard error: a view drawn in place on a terminal, lines
//! elsewhere, JSON for programs.
//!
//! Events become records ([`LiveRecord::new`]), and a [`LiveState`] adds them up. So a run of
//! another process looks like a run of this one. [`log`] words the lines that pass by, [`view`]
//! draws the state, and [`screen`] puts both on the terminal.
//!
//! A thread of the display's own writes: a terminal or pipe that takes nothing for a while holds up
//! no measurement.

mod chart;
mod line;
mod log;
mod option;
mod screen;
mod view;

use std::io::Write as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pgdyno_lab::wait;
use pgdyno_model::progress::{Event, Notice, Progress};
use pgdyno_report::live::{LiveRecord, LiveState};
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};

use self::line::{Look, Rendered};
use self::log::{Amount, Log};
use self::option::Form;
pub(crate) use self::option::ProgressOption;
use self::screen::{Screen, Size};
use crate::output::indent_lines;
use crate::signals;

/// Between two looks at the state.
const FRAME: Duration = Duration::from_millis(200);
/// How long a reader that takes nothing holds up the end after a signal.
const PATIENCE: Duration = Duration::from_secs(1);
/// Size of a terminal that does not tell it.
const DEFAULT_SIZE: Size = Size { columns: 80, rows: 24 };

/// Shows progress until it is dropped or [`Display::end`]ed.
pub(crate) struct Display {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

/// State shared by callers and the writer's thread.
struct Shared {
    form: Form,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    live: LiveState,
    log: Log,
    /// When the newest record came.
    newest: Instant,
    /// Whole lines that are still to be written.
    pending: String,
    is_over: bool,
    is_written: bool,
}

impl Display {
    pub(crate) fn new(option: ProgressOption) -> Self {
        let form = option.form();
        let amount = match form {
            Form::Plain => Amount::Everything,
            Form::View => Amount::Results,
            Form::Json | Form::Failures => Amount::Failures,
        };
        let state = State {
            live: LiveState::default(),
            log: Log::new(amount),
            newest: Instant::now(),
            pending: String::new(),
            is_over: false,
            is_written: false,
        };
        let shared = Arc::new(Shared { form, state: Mutex::new(state), changed: Condvar::new() });
        let theirs = Arc::clone(&shared);
        let told = Arc::clone(&shared);
        wait::listen(Some(Arc::new(move |waiting| {
            let text = format!("a statement of pgdyno's own has {waiting}");
            told.event(&Event::Note(Notice::Waits(text)));
        })));
        let writer = std::thread::Builder::new().name("progress".into());
        // Without a thread there is no progress; the work goes on.
        Self { writer: writer.spawn(move || theirs.write()).ok(), shared }
    }

    /// Takes note of events that came before this display: they are shown as the state that they
    /// lead to, without a line of their own. JSON has each of them.
    pub(crate) fn catch_up(&self, events: &[Event]) {
        if self.shared.form == Form::Json {
            return events.iter().for_each(|event| self.shared.event(event));
        }
        let mut state = self.shared.lock();
        events.iter().map(LiveRecord::new).for_each(|record| state.live.add(record));
    }

    /// Prints a line that is no record, unless there is JSON or nothing but failures.
    pub(crate) fn line(&self, text: &str) {
        if matches!(self.shared.form, Form::View | Form::Plain) {
            self.shared.print(self.shared.lock(), Some(&indent_lines(text)));
        }
    }

    /// Takes the view away, once everything is written.
    pub(crate) fn end(mut self) {
        self.close();
    }

    fn close(&mut self) {
        let Some(writer) = self.writer.take() else { return };
        wait::listen(None);
        let mut state = self.shared.lock();
        state.is_over = true;
        self.shared.changed.notify_all();
        let mut interrupted = None;
        while !state.is_written {
            if signals::is_interrupted() {
                let since: &mut Instant = interrupted.get_or_insert_with(Instant::now);
                if since.elapsed() > PATIENCE {
                    return;
                }
            }
            let waited = self.shared.changed.wait_timeout(state, FRAME);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        // It has nothing left to do.
        let _ = writer.join();
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.close();
    }
}

impl Progress for Display {
    fn event(&self, event: &Event) {
        if let Event::Begun { run, trials, store } = event {
            self.line(&format!("run {}: {trials} trials, kept in {}", run.run, store.display()));
        }
        self.shared.event(event);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn event(&self, event: &Event) {
        let record = LiveRecord::new(event);
        let mut state = self.lock();
        let text = match self.form {
            Form::Json => pgdyno_model::json::json_line(&record).ok(),
            _ => {
                let State { live, log, .. } = &mut *state;
                log.line(&record, live).map(|line| indent_lines(&line))
            }
        };
        state.newest = Instant::now();
        state.live.add(record);
        self.print(state, text.as_deref());
    }

    /// Hands a line to the writer.
    fn print(&self, mut state: MutexGuard<'_, State>, text: Option<&str>) {
        if let Some(text) = text {
            state.pending.push_str(text);
            state.pending.push('\n');
            self.changed.notify_all();
        }
    }

    /// Writes lines and the view until the display is over.
    fn write(&self) {
        let mut screen = Screen::default();
        let is_colored = option::is_colored();
        let mut is_over = false;
        while !is_over {
            let mut state = self.lock();
            if state.pending.is_empty() && !state.is_over {
                let waited = self.changed.wait_timeout(state, FRAME);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            is_over = state.is_over;
            let lines = std::mem::take(&mut state.pending);
            let out = if self.form == Form::View {
                let size = terminal_size();
                // The last column stays free: at it, terminals differ in where the cursor is.
                let look = Look { width: size.columns.saturating_sub(1), is_colored };
                let view = match is_over {
                    true => Vec::new(),
                    false => view::view(&state.live, state.newest.elapsed(), look),
                };
                drop(state);
                on_terminal(&mut screen, &lines, view, size)
            } else {
                drop(state);
                lines
            };
            if !out.is_empty() {
                // Nobody can be told of a standard error that takes nothing.
                let _ = std::io::stderr().write_all(out.as_bytes());
            }
        }
        self.lock().is_written = true;
        self.changed.notify_all();
    }
}

/// Returns what to write on the terminal. In the background nothing is drawn: what the shell
/// prints stands below the view.
fn on_terminal(screen: &mut Screen, above: &str, view: Vec<Rendered>, size: Size) -> String {
    let is_behind = tcgetpgrp(std::io::stderr()).is_ok_and(|group| group != getpgrp());
    if is_behind {
        *screen = Screen::default();
        return above.to_owned();
    }
    screen.draw(above, view, size)
}

fn terminal_size() -> Size {
    let size = tcgetwinsize(std::io::stderr()).ok().filter(|s| s.ws_col > 0 && s.ws_row > 0);
    size.map_or(DEFAULT_SIZE, |size| Size { columns: size.ws_col.into(), rows: size.ws_row.into() })
}
