//! Notes and tags that the user writes on results. They are kept apart from measurements, in a file
//! beside the store (`STORE.notes`).
//!
//! Every version of a note stays: writing adds one. Several processes may write.

use std::collections::BTreeMap;
use std::path::Path;

use pgdyno_model::Advice;
use pgdyno_model::units::Epoch;
use rusqlite::params;
use serde::{Deserialize, Serialize};

use crate::side_file::{SideFile, SideFileError};

const SUFFIX: &str = ".notes";

const VERSION: i64 = 1;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS note (
    id         INTEGER PRIMARY KEY,
    subject    TEXT NOT NULL,                     -- id of a run, probe, crash test or import
    text       TEXT NOT NULL,
    tags       TEXT NOT NULL,                     -- JSON: [\"tag\", …]
    written_at INTEGER NOT NULL                   -- nanoseconds since the Unix epoch
) STRICT;
CREATE INDEX IF NOT EXISTS note_by_subject ON note (subject, id);
";

/// A note with its tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Note {
    /// The text; empty for tags without a note.
    pub text: String,
    /// Tags, in the order in which they were written.
    pub tags: Vec<String>,
}

/// A version of a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoteVersion {
    /// When it was written.
    #[serde(serialize_with = "pgdyno_text::format::as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub written_at: Epoch,
    /// The note as it was then.
    #[serde(flatten)]
    pub note: Note,
}

/// Reason why a note was not written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum NoteError {
    /// The note is larger than notes may be.
    #[error("cannot write the note: {found}")]
    TooLarge { found: String },
    /// The file of notes cannot be used.
    #[error(transparent)]
    File(#[from] SideFileError),
}

impl Advice for NoteError {
    fn help(&self) -> Option<String> {
        match self {
            Self::TooLarge { .. } => Some(format!(
                "a note has at most {} characters, and {} tags of at most {}",
                Note::TEXT_MOST,
                Note::TAGS_MOST,
                Note::TAG_MOST
            )),
            Self::File(error) => error.help(),
        }
    }
}

impl Note {
    /// Longest text (characters).
    pub const TEXT_MOST: usize = 10_000;
    /// Most tags (count).
    pub const TAGS_MOST: usize = 20;
    /// Longest tag (characters).
    pub const TAG_MOST: usize = 40;

    /// Returns the note without blanks around text and tags, empty tags and doubles.
    ///
    /// # Errors
    /// [`NoteError::TooLarge`].
    pub fn tidy(self) -> Result<Self, NoteError> {
        let text = self.text.trim().to_owned();
        let mut tags: Vec<String> = Vec::new();
        for tag in self.tags {
            let tag = tag.split_whitespace().collect::<Vec<_>>().join(" ");
            if !tag.is_empty() && !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        let characters = text.chars().count();
        let longest = tags.iter().map(|tag| tag.chars().count()).max().unwrap_or(0);
        let found = match () {
            () if characters > Self::TEXT_MOST => format!("it has {characters} characters"),
            () if tags.len() > Self::TAGS_MOST => format!("it has {} tags", tags.len()),
            () if longest > Self::TAG_MOST => format!("one of its tags has {longest} characters"),
            () => return Ok(Self { text, tags }),
        };
        Err(NoteError::TooLarge { found })
    }
}

/// The notes on a store's results.
#[derive(Debug)]
pub struct Notes(SideFile);

impl Notes {
    /// Opens the notes of the store at `store` for writing, and makes their file if it is missing.
    pub fn open(store: &Path) -> Result<Self, SideFileError> {
        SideFile::open(store, SUFFIX, (VERSION, SCHEMA)).map(Self)
    }

    /// Opens the notes of the store at `store` for reading; none if nobody has written any.
    pub fn open_for_reading(store: &Path) -> Result<Option<Self>, SideFileError> {
        Ok(SideFile::open_for_reading(store, SUFFIX, VERSION)?.map(Self))
    }

    /// Returns the newest version of every note, by the id of its subject.
    ///
    /// # Errors
    /// [`SideFileError::Sqlite`].
    pub fn all(&self) -> Result<BTreeMap<String, Note>, SideFileError> {
        let query = "SELECT subject, text, tags FROM note WHERE id IN
                     (SELECT max(id) FROM note GROUP BY subject)";
        let rows = self.0.connection.prepare_cached(query).and_then(|mut statement| {
            statement
                .query_map([], |row| Ok((row.get::<_, String>(0)?, note(row, 1)?)))?
                .collect::<rusqlite::Result<_>>()
        });
        rows.map_err(self.0.failed("read the notes"))
    }

    /// Returns every version of the note on `subject`, newest first.
    ///
    /// # Errors
    /// [`SideFileError::Sqlite`].
    pub fn history(&self, subject: &str) -> Result<Vec<NoteVersion>, SideFileError> {
        let query = "SELECT written_at, text, tags FROM note WHERE subject = ? ORDER BY id DESC";
        let rows = self.0.connection.prepare_cached(query).and_then(|mut statement| {
            let version = |row: &rusqlite::Row<'_>| {
                Ok(NoteVersion { written_at: Epoch(row.get(0)?), note: note(row, 1)? })
            };
            statement.query_map([subject], version)?.collect::<rusqlite::Result<_>>()
        });
        rows.map_err(self.0.failed("read a note"))
    }

    /// Adds every version of the note on `subject` that `other` has and this has not, oldest first.
    /// Returns how many were added.
    ///
    /// # Errors
    /// [`NoteError`]; a note of `other` may be larger than notes may be.
    pub fn take(&self, other: &Self, subject: &str) -> Result<usize, NoteError> {
        let known = self.history(subject)?;
        let mut added = 0;
        for NoteVersion { written_at, note } in other.history(subject)?.into_iter().rev() {
            let version = NoteVersion { written_at, note: note.tidy()? };
            if !known.contains(&version) {
                self.write(subject, &version.note, written_at)?;
                added += 1;
            }
        }
        Ok(added)
    }

    /// Adds a version of the note on `subject`.
    ///
    /// # Errors
    /// [`SideFileError::Sqlite`].
    pub fn write(&self, subject: &str, note: &Note, now: Epoch) -> Result<(), SideFileError> {
        let tags = serde_json::Value::from(note.tags.clone()).to_string();
        self.0
            .connection
            .execute(
                "INSERT INTO note (subject, text, tags, written_at) VALUES (?, ?, ?, ?)",
                params![subject, note.text, tags, now.0],
            )
            .map_err(self.0.failed("write a note"))?;
        Ok(())
    }
}

/// Reads a note from two columns of a row. Tags that cannot be read are an error of the column.
fn note(row: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<Note> {
    let tags: String = row.get(first + 1)?;
    let tags = serde_json::from_str(&tags).map_err(|e| {
        let kind = rusqlite::types::Type::Text;
        rusqlite::Error::FromSqlConversionFailure(first + 1, kind, Box::new(e))
    })?;
    Ok(Note { text: row.get(first)?, tags })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_stays_and_the_newest_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.sqlite3");
        std::fs::write(&store, "").unwrap();
        assert!(Notes::open_for_reading(&store).unwrap().is_none());
        let notes = Notes::open(&store).unwrap();
        let note = |text: &str| Note { text: text.into(), tags: vec!["a".into()] };
        notes.write("run-1", &note("first"), Epoch(1)).unwrap();
        Notes::open(&store).unwrap().write("run-1", &note("second"), Epoch(2)).unwrap();
        notes.write("run-2", &note("other"), Epoch(3)).unwrap();
        let all = Notes::open_for_reading(&store).unwrap().unwrap().all().unwrap();
        assert_eq!(all["run-1"].text, "second");
        assert_eq!(all.len(), 2);
        let history = notes.history("run-1").unwrap();
        assert_eq!(
            history.iter().map(|v| v.note.text.as_str()).collect::<Vec<_>>(),
            ["second", "first"]
        );
    }

    #[test]
    fn a_link_or_a_file_that_others_may_write_to_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.sqlite3");
        std::fs::write(&store, "").unwrap();
        let (path, target) = (folder.path().join("store.sqlite3.notes"), folder.path().join("x"));
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(matches!(Notes::open(&store), Err(SideFileError::NotTrusted { .. })));
        assert!(!target.exists());
        std::fs::remove_file(&path).unwrap();
        drop(Notes::open(&store).unwrap());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(matches!(Notes::open(&store), Err(SideFileError::NotTrusted { .. })));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
        assert!(matches!(Notes::open(&store), Err(SideFileError::NotTrusted { .. })));
    }

    #[test]
    fn notes_of_a_newer_version_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.sqlite3");
        std::fs::write(&store, "").unwrap();
        let notes = Notes::open(&store).unwrap();
        notes.0.connection.execute_batch("PRAGMA user_version = 99").unwrap();
        drop(notes);
        let found = [Notes::open(&store).err(), Notes::open_for_reading(&store).err()];
        for error in found {
            assert!(
                matches!(error, Some(SideFileError::OtherSchema { found: 99, .. })),
                "{error:?}"
            );
        }
    }

    #[test]
    fn notes_go_along_once_with_all_their_versions() {
        let folder = tempfile::tempdir().unwrap();
        let notes_of = |name: &str| {
            let store = folder.path().join(name);
            std::fs::write(&store, "").unwrap();
            Notes::open(&store).unwrap()
        };
        let (here, there) = (notes_of("here"), notes_of("there"));
        let note = |text: &str| Note { text: text.into(), tags: Vec::new() };
        for (at, text) in [(1, "first"), (2, "second")] {
            there.write("run-1", &note(text), Epoch(at)).unwrap();
        }
        there.write("run-2", &note("other"), Epoch(3)).unwrap();
        assert_eq!(here.take(&there, "run-1").unwrap(), 2);
        assert_eq!(here.take(&there, "run-1").unwrap(), 0);
        assert_eq!(here.history("run-1").unwrap(), there.history("run-1").unwrap());
        assert_eq!(here.history("run-2").unwrap(), []);
        there.write("run-2", &note(&"a".repeat(Note::TEXT_MOST + 1)), Epoch(4)).unwrap();
        assert!(matches!(here.take(&there, "run-2"), Err(NoteError::TooLarge { .. })));
    }

    #[test]
    fn notes_are_bounded_and_tidied() {
        let note =
            Note { text: " a \n".into(), tags: vec![" x  y ".into(), "x y".into(), " ".into()] };
        assert_eq!(note.tidy().unwrap(), Note { text: "a".into(), tags: vec!["x y".into()] });
        let long = Note { text: "a".repeat(Note::TEXT_MOST + 1), tags: Vec::new() };
        assert!(matches!(long.tidy(), Err(NoteError::TooLarge { .. })));
        let tags = (0..=Note::TAGS_MOST).map(|n| n.to_string()).collect();
        assert!(Note { text: String::new(), tags }.tidy().is_err());
    }
}
