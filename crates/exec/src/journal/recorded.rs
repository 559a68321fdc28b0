//! What the journal keeps of servers that pgdyno does not own: data only.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A schema of a server that pgdyno does not own, as the journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSchema {
    /// How to reach the database; without a password.
    pub dsn: String,
    /// The schema's name.
    pub schema: String,
}

/// One setting as it was in `postgresql.auto.conf`, and the values that pgdyno gives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSetting {
    /// The setting's name.
    pub name: String,
    /// Its value before; none: the file did not name it.
    pub was: Option<String>,
    /// The values that pgdyno gives it.
    pub set: BTreeSet<String>,
}

/// What a server's settings were before pgdyno changed them, as the journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSettings {
    /// How to reach the server; without a password.
    pub dsn: String,
    /// The server's own identifier: another server at the same place is left alone.
    pub system_identifier: String,
    /// The settings.
    pub settings: Vec<RecordedSetting>,
}
