//! Block devices: which one a path means, whether it may be written, and holding on to it.

pub mod claim;
pub mod edge;
pub mod held;
pub mod identity;
pub mod refusal;
pub mod safety;
pub mod writers;
