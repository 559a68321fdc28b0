//! Faults: what is broken on purpose, under what, and during what.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray, VariantNames};

use crate::names::names;

/// Something that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Fault {
    /// SIGKILL to the postmaster and its children.
    Process,
    /// `pg_ctl stop -m immediate`.
    Immediate,
    /// SIGKILL to one backend.
    Backend,
    /// The filesystem's volatile state goes as with the power.
    Power,
    /// An emulated disk that acknowledges flushes that it did not do, and then loses power: a
    /// planted failure, which says nothing of a real drive. Its name was `lying-disk` before.
    #[serde(alias = "lying-disk")]
    #[strum(to_string = "emulated-lie", serialize = "lying-disk")]
    EmulatedLie,
    /// A write of which a part only reached the disk when the power went.
    TornWrite,
    /// A read, write or flush that fails with EIO.
    IoError,
    /// A filesystem that has no room left.
    DiskFull,
    /// Nothing is injected: somebody pulls the plug.
    Plug,
}

names!(Fault, parse);

impl Fault {
    /// All faults.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;
    /// Names of all faults, as files and options have them.
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;

    /// Whether every server fails: the fault breaks a promise that PostgreSQL builds on.
    pub fn is_planted(self) -> bool {
        self == Self::EmulatedLie
    }

    /// Whether its rounds put flushes of the storage under test.
    pub fn tests_storage(self) -> bool {
        matches!(self, Self::Power | Self::EmulatedLie | Self::TornWrite | Self::IoError)
    }

    /// Whether its rounds show a flush that was skipped only by the commits that hung on the last
    /// one: nothing but the power fails in them.
    pub fn hangs_on_the_last_flush(self) -> bool {
        matches!(self, Self::Power | Self::EmulatedLie)
    }

    /// Returns, in words, which data the fault can destroy and which it leaves alone.
    pub fn models(self) -> &'static str {
        match self {
            Self::Process => {
                "the server's processes die; the kernel and its caches live: says nothing of the \
                 storage"
            }
            Self::Immediate => {
                "the server ends without a checkpoint; nothing that it wrote is lost"
            }
            Self::Backend => {
                "one backend dies; the server throws its shared memory away and recovers"
            }
            Self::Power => {
                "what the kernel had not made durable is lost, and a server that waited for it \
                 must not have acknowledged; a drive's own cache is not modelled unless the disk \
                 is an emulated one"
            }
            Self::EmulatedLie => {
                "a planted failure: an emulated disk acknowledges flushes and keeps the data in \
                 its cache, which the power loss takes; every server fails on it, and it says \
                 nothing about a real drive"
            }
            Self::TornWrite => {
                "the power goes in the middle of a checkpoint's write of a data page: its first \
                 sectors are on the disk"
            }
            Self::IoError => {
                "the disk answers one flush, or one write of WAL or of a data page, with EIO; the \
                 power goes afterwards"
            }
            Self::DiskFull => {
                "the filesystem of PGDATA or pg_wal has no room left, until the server has run \
                 into that"
            }
            Self::Plug => "whatever the machine loses when its plug is pulled",
        }
    }

    /// Whether it takes a filesystem that pgdyno made.
    pub fn needs_filesystem(self) -> bool {
        matches!(
            self,
            Self::Power | Self::EmulatedLie | Self::TornWrite | Self::IoError | Self::DiskFull
        )
    }

    /// Whether it takes a disk that pgdyno emulates.
    pub fn needs_emulated_disk(self) -> bool {
        matches!(self, Self::EmulatedLie | Self::TornWrite | Self::IoError | Self::DiskFull)
    }
}

/// Moment of the server's work at which a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// The load, at a moment drawn by the seed.
    Load,
    /// A checkpoint's writes.
    Checkpoint,
    /// The moment after a checkpoint, which recovery begins from.
    AfterCheckpoint,
    /// A switch of WAL segments.
    SegmentSwitch,
    /// VACUUM of the tables under load.
    Vacuum,
    /// CREATE INDEX on a table under load.
    CreateIndex,
    /// Recovery from a first crash: the fault strikes twice.
    Recovery,
    /// The time between a write of WAL and the flush that makes it durable, on an emulated disk.
    WalFlush,
    /// A request of the disk's, as the fault says.
    Request,
    /// Whatever the one who pulls the plug aims at.
    Hand,
}

impl Aim {
    /// Returns the moment in words, to follow "during".
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Checkpoint => "a checkpoint",
            Self::AfterCheckpoint => "the moment after a checkpoint",
            Self::SegmentSwitch => "a WAL segment switch",
            Self::Vacuum => "VACUUM",
            Self::CreateIndex => "CREATE INDEX",
            Self::Recovery => "recovery",
            Self::WalFlush => "the time between a WAL write and its flush",
            Self::Request => "a request of the disk's",
            Self::Hand => "load, by hand",
        }
    }
}

/// Part of the data whose disk lies or fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Under {
    /// PGDATA and pg_wal, on however many disks.
    #[default]
    Both,
    /// PGDATA only; pg_wal lies on an honest disk of its own.
    Data,
    /// pg_wal only; PGDATA lies on an honest disk of its own.
    Wal,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for fault in Fault::ALL {
            assert_eq!(Fault::parse(fault.name()), Some(*fault));
        }
        assert_eq!(
            Fault::parse("lying-disk"),
            Some(Fault::EmulatedLie),
            "its name in earlier versions"
        );
    }
}
