//! SQLSTATEs that the engine recognises, and those it reports for errors of its own.

/// The connection was lost.
pub const CONNECTION_FAILURE: &str = "08006";
/// The server broke the protocol.
pub const PROTOCOL_VIOLATION: &str = "08P01";
/// The server asks for something that the engine does not do, such as COPY.
pub const FEATURE_NOT_SUPPORTED: &str = "0A000";
/// An expression has no value, or a statement cannot be put into a message.
pub const DATA_EXCEPTION: &str = "22000";
/// A script ended inside a transaction block.
pub const ACTIVE_TRANSACTION: &str = "25001";
/// The transaction was not done when its time was over.
pub const QUERY_CANCELED: &str = "57014";
/// The transaction cannot be serialized with others.
pub const SERIALIZATION_FAILURE: &str = "40001";
/// Two transactions wait for each other.
pub const DEADLOCK_DETECTED: &str = "40P01";
/// A `\gset` got more or less than one row.
pub const CARDINALITY_VIOLATION: &str = "21000";
/// A program that a script runs failed.
pub const EXTERNAL_ROUTINE: &str = "38000";
/// The ledger cannot be written.
pub const IO_ERROR: &str = "58030";
/// A script misuses a pipeline.
pub const PIPELINE: &str = "0A000";
