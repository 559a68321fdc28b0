//! The commands, one in each file: its options for clap and a function `run` that does its work.

pub(crate) mod attach;
pub(crate) mod audit;
pub(crate) mod clean;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod crash;
pub(crate) mod disk;
pub(crate) mod doctor;
pub(crate) mod emulated_disk;
pub(crate) mod export;
pub(crate) mod filesystems;
pub(crate) mod fsync;
pub(crate) mod list;
pub(crate) mod load;
#[cfg(feature = "man-pages")]
pub(crate) mod man_pages;
pub(crate) mod new;
pub(crate) mod pgbench;
pub(crate) mod recipes;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod stop;
pub(crate) mod verify;
