//! Telemetry and doctor.

pub mod doctor;
pub mod telemetry;
