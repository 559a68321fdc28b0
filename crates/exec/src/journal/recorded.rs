//! State of servers that pgdyno does not own, as the journal keeps it: data only.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A schema of a server that pgdyno does not own, as the journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSchema {
    /// The connection string, without a password.
    pub dsn: String,
    /// The schema's name.
    pub schema: String,
}

/// One setting as it was in `postgresql.auto.conf`, and the values that pgdyno gives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSetting {
    /// The setting's name.
    pub name: String,
    /// Value before pgdyno changed it; none if the file did not name the setting.
    pub was: Option<String>,
    /// The values that pgdyno gives it.
    pub set: BTreeSet<String>,
}

/// Settings of a server before pgdyno changed them, as the journal keeps them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSettings {
    /// The connection string, without a password.
    pub dsn: String,
    /// System identifier of the cluster: another server at the same place is left alone.
    pub system_identifier: String,
    /// The settings.
    pub settings: Vec<RecordedSetting>,
}
