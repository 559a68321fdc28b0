//! Integration tests of the crate `lab`, one module for each subject.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    reason = "tests and their helpers fail by panicking"
)]

mod builds;
mod connections;
mod copyfrom;
mod given;
mod hostile;
mod live;
mod load;
mod loading;
mod panic;
mod pooler;
mod quickstart;
mod replica;
mod tls_server;
mod workloads;
