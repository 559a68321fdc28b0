//! The runs of a store in a list, and where each stands.
//!
//! A session that has no end counts as running. A process that was killed could not record its
//! end: whoever knows that it is gone says so by [`Store::assume_ended`].

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_model::record::{RunState, SessionEnd};
use pgdyno_model::units::Epoch;
use rusqlite::params;

use super::archive::host_of;
use super::read::{json, time};
use super::{SessionId, Store, StoreError};

/// A run in a list.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunSummary {
    /// Name.
    pub id: String,
    /// Name of the recipe or of the experiment file.
    pub recipe: String,
    /// Question that the run answers.
    pub question: Option<String>,
    /// When the run began.
    #[serde(serialize_with = "pgdyno_text::format::as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub started_at: Epoch,
    /// State of the run, by its trials and sessions.
    pub state: RunState,
    /// Planned trials that are completed (count).
    pub trials_done: u32,
    /// Planned trials (count).
    pub trials_planned: u32,
    /// Attempts that failed (count), also those whose trial was completed later.
    pub attempts_failed: u32,
    /// Treatments whose crash tests were asked for and are not done to the end (count).
    pub not_crashed: u32,
    /// Whether `pgdyno pgbench --store` stored the run.
    pub ad_hoc: bool,
    /// Machines that the run's sessions ran on, by name, or as `--hosts` named the machine.
    /// Sessions of earlier versions name none.
    pub hosts: Vec<String>,
}

/// A run in a list, with the checksum of its content.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedRun {
    /// The run.
    pub summary: RunSummary,
    /// Head of the run's chain of checksums, in hexadecimal digits: it changes whenever something
    /// is added to the run. None for a run from before there were checksums.
    pub head: Option<String>,
}

/// Runs that measured one treatment under two names, as far as the store was searched for them: a
/// list of many runs asks for them with each run that it analyses.
#[derive(Debug, Default)]
pub(super) struct EqualTreatments {
    /// Removals before the search (their last number). One more gives numbers of runs away again.
    removals: i64,
    /// The last run that was looked at.
    searched: i64,
    /// The runs: when each began, and its id.
    found: BTreeSet<(i64, String)>,
}

impl Store {
    /// All runs, newest first.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn runs(&self) -> Result<Vec<RunSummary>, StoreError> {
        Ok(self.listed_runs()?.into_iter().map(|run| run.summary).collect())
    }

    /// All runs with the heads of their chains, newest first. One query reads all of them.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Corrupt`].
    pub fn listed_runs(&self) -> Result<Vec<ListedRun>, StoreError> {
        self.listed("TRUE", params![])
    }

    /// Runs that meet `condition`, newest first.
    fn listed(
        &self,
        condition: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<Vec<ListedRun>, StoreError> {
        let open = self.runs_with_open_sessions()?;
        let sql = format!(
            "SELECT id, recipe, question, started_at,
                    coalesce((SELECT trials_planned FROM run_extension WHERE run = run.id
                              ORDER BY id DESC LIMIT 1), trials_planned),
                    (SELECT count(DISTINCT ordinal) FROM trial
                     WHERE run = run.id AND failure IS NULL),
                    (SELECT count(*) FROM trial WHERE run = run.id AND failure IS NOT NULL),
                    (SELECT json_quote(e.state) FROM session s
                     JOIN session_end e ON e.session = s.id WHERE s.run = run.id
                     ORDER BY s.id DESC LIMIT 1) AS state,
                    (SELECT hex(head) FROM seal WHERE chain = run.id
                     ORDER BY position DESC LIMIT 1),
                    experiment = '',
                    (SELECT json_group_array(DISTINCT json_extract(host, '$.name')) FROM session
                     WHERE run = run.id AND json_valid(host)
                         AND json_type(host, '$.name') = 'text') AS hosts,
                    max(0, coalesce(json_array_length(plan, '$.crashed'), 0) -
                        (SELECT count(DISTINCT treatment) FROM crash_record
                         WHERE run = run.id AND json_extract(outcome, '$.complete'))),
                    (SELECT source FROM arrival WHERE record = run.id ORDER BY id DESC LIMIT 1)
             FROM run WHERE {condition} ORDER BY started_at DESC, rowid DESC"
        );
        self.rows("list the runs", &sql, parameters, |row| {
            let source: Option<String> = row.get(12)?;
            let hosts = match source.as_deref().and_then(host_of) {
                Some(name) => vec![name],
                None => json(row, 10)?,
            };
            let (id, planned, done): (String, u32, u32) = (row.get(0)?, row.get(4)?, row.get(5)?);
            let state = state(open.get(&id), done >= planned, json(row, 7)?);
            let summary = RunSummary {
                id,
                recipe: row.get(1)?,
                question: row.get(2)?,
                started_at: time(row, 3)?,
                state,
                // One that ended by itself had no more to do.
                trials_planned: if state == RunState::Completed { done } else { planned },
                trials_done: done,
                attempts_failed: row.get(6)?,
                not_crashed: row.get(11)?,
                ad_hoc: row.get(9)?,
                hosts,
            };
            Ok(ListedRun { summary, head: row.get(8)? })
        })
    }

    /// Returns the state of a run. A session without an end counts as running, unless
    /// [`Store::assume_ended`] named it: only the machine that runs a process knows whether it
    /// lives (see [`Store::open_sessions`]).
    ///
    /// # Errors
    /// [`StoreError::UnknownRun`] for a name that is no run's; [`StoreError::Sqlite`] or
    /// [`StoreError::Corrupt`].
    pub fn state(&self, run: &str) -> Result<RunState, StoreError> {
        match self.listed("id = ?", [run])?.pop() {
            Some(listed) => Ok(listed.summary.state),
            None => Err(self.unknown(run)?),
        }
    }

    /// Runs whose plan has two treatments that set the same, newest first.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn runs_with_equal_treatments(&self) -> Result<Vec<String>, StoreError> {
        const LAST: &str =
            "SELECT coalesce((SELECT max(id) FROM removal), 0), coalesce(max(rowid), 0) FROM run";
        // Treatments of one plan were written alike, so that equal ones are equal as text.
        const EQUAL: &str =
            "SELECT started_at, id FROM run WHERE rowid > ? AND json_valid(plan) AND
            (SELECT count(*) > count(DISTINCT json_remove(value, '$.levels'))
             FROM json_each(plan, '$.treatments'))";
        let mut known = self.equal_treatments.borrow_mut();
        let last = self.rows("look for new runs", LAST, params![], |row| row.try_into())?;
        let (removals, last): (i64, i64) = last.first().copied().unwrap_or_default();
        if removals != known.removals {
            *known = EqualTreatments { removals, ..EqualTreatments::default() };
        }
        if last > known.searched {
            let searched = [known.searched];
            let new = self.rows("look for equal treatments", EQUAL, searched, |row| row.try_into());
            known.found.extend(new?);
            known.searched = last;
        }
        Ok(known.found.iter().rev().map(|(_, id)| id.clone()).collect())
    }

    /// Treats open sessions as interrupted from now on: their processes are gone. The store is not
    /// written. Returns whether others were before.
    pub fn assume_ended(&mut self, sessions: impl IntoIterator<Item = SessionId>) -> bool {
        let dead = sessions.into_iter().collect();
        std::mem::replace(&mut self.dead, dead) != self.dead
    }

    /// A number that differs from an earlier one if another connection has written since.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn data_version(&self) -> Result<i64, StoreError> {
        self.value("look for changes", "PRAGMA data_version", [])
    }

    /// Runs with an open session, and whether one of those processes may be at work.
    fn runs_with_open_sessions(&self) -> Result<BTreeMap<String, bool>, StoreError> {
        let mut open = BTreeMap::new();
        for session in self.open_sessions()? {
            *open.entry(session.run).or_default() |= !self.dead.contains(&session.id);
        }
        Ok(open)
    }
}

/// Returns where a run stands whose last session with an end had `end`. `open` says of one with an
/// open session whether a process may be at work.
fn state(open: Option<&bool>, is_done: bool, end: Option<SessionEnd>) -> RunState {
    match (open, end) {
        (Some(true), _) => RunState::Running,
        _ if is_done => RunState::Completed,
        (Some(false), _) | (None, Some(SessionEnd::Interrupted) | None) => RunState::Interrupted,
        // It had fewer to do than were planned: a run may end by itself, and a machine may lack a
        // storage.
        (None, Some(SessionEnd::Completed)) => RunState::Completed,
        (None, Some(SessionEnd::Failed)) => RunState::Failed,
    }
}
