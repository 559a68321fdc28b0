//! The raw curves of a disk: sequential throughput by position, random requests by queue depth,
//! reads and writes mixed.

mod builtin;
mod fio;
mod point;

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pgdyno_exec::journal::Journal;
use pgdyno_facts as facts;
use pgdyno_model::advice::with_causes;
use pgdyno_model::facts::StorageFacts;
use pgdyno_model::probe::{DiskProbe, Pattern};
use pgdyno_model::units::Bytes;
use pgdyno_model::{Advice, FailureKind};
use point::Planned;
use rustix::fs::{FallocateFlags, OFlags};

use super::place::{ProbeDirectory, directory_step, open};
use super::{ProbeError, Progress, SizeSource, implausible, share};

/// Requests of the sequential curves: large enough that their number does not matter.
const SEQUENTIAL_BYTES: u32 = 1 << 20;
/// Requests under way at a time in the sequential curves: the next is there when one is done.
const SEQUENTIAL_DEPTH: u32 = 4;
/// Requests of the random curves: PostgreSQL's block.
const RANDOM_BYTES: u32 = 8192;
/// Queue depths of the random curves.
const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// The file that is measured, within the probe's directory.
const FILE: &str = "span";

/// Options of a disk probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// Size of the file that is made in a directory; a device is measured whole.
    pub size: Bytes,
    /// The origin of that size, for messages.
    pub size_from: SizeSource,
    /// How long each point takes, but for the sequential write, which fills the file once.
    pub per_point: Duration,
    /// Parts of the span whose sequential throughput is measured (count).
    pub zones: u32,
    /// Whether pgdyno's own load is offered although fio is there.
    pub builtin: bool,
}

impl Default for DiskOptions {
    fn default() -> Self {
        Self {
            size: Bytes(4 << 30),
            size_from: SizeSource::Option,
            per_point: Duration::from_secs(3),
            zones: 10,
            builtin: false,
        }
    }
}

/// A disk probe that has looked at its target and changed nothing yet.
pub struct DiskPlan {
    path: PathBuf,
    /// Whether the target is a device, which is only read. In a directory a file is made, written
    /// and read.
    is_device: bool,
    span: Bytes,
    /// Origin of the size, unless it is the device's own.
    size: Option<SizeSource>,
    points: Vec<Planned>,
    per_point: Duration,
    fio: Option<fio::Fio>,
}

impl DiskPlan {
    /// Looks at `path`, a directory or a block device, and plans its points.
    ///
    /// # Errors
    /// [`ProbeError`]: the path is neither, cannot be read, or is too small.
    pub fn new(path: &Path, options: &DiskOptions) -> Result<Self, ProbeError> {
        let failed = |what| ProbeError::io(what, path);
        let real = fs::canonicalize(path).map_err(failed("look at"))?;
        let kind = fs::metadata(&real).map_err(failed("look at"))?.file_type();
        let is_device = kind.is_block_device();
        let span = if is_device {
            let size = File::open(&real).and_then(|mut d| d.seek(SeekFrom::End(0)));
            Bytes(size.map_err(failed("open"))?)
        } else if kind.is_dir() {
            options.size
        } else {
            return Err(ProbeError::NoTarget { path: path.to_owned() });
        };
        let zones = u64::from(options.zones.max(1));
        let zone = span.0 / zones / u64::from(SEQUENTIAL_BYTES) * u64::from(SEQUENTIAL_BYTES);
        let least = Bytes(zones * u64::from(SEQUENTIAL_DEPTH * SEQUENTIAL_BYTES));
        let size = (!is_device).then_some(options.size_from);
        if zone * zones < least.0 {
            return Err(ProbeError::TooSmall { path: path.to_owned(), span, least, size });
        }
        let points = points(zone, zones, options.per_point)
            .into_iter()
            .filter(|p| !is_device || !p.pattern.writes())
            .collect();
        let fio = if options.builtin { None } else { fio::Fio::find()? };
        let (span, per_point) = (Bytes(zone * zones), options.per_point);
        Ok(Self { path: real, is_device, span, size, points, per_point, fio })
    }

    /// Returns the steps of the probe for a dry run, a line each, with fio's very arguments.
    pub fn lines(&self) -> Vec<String> {
        let parent = self.parent();
        let step = directory_step(&parent, "XXXXXXXX");
        let place = parent.join("pgdyno-probe-XXXXXXXX");
        let mut lines = vec![step.to_string()];
        if !self.is_device {
            lines.push(format!("make {} of {}", place.join(FILE).display(), self.span));
        }
        for point in &self.points {
            lines.push(match &self.fio {
                Some(fio) => {
                    let step = fio.step(point, &self.file(&place), &place, self.is_device, true);
                    step.to_string()
                }
                None => builtin::line(point, &self.file(&place)),
            });
        }
        lines.push(format!(
            "remove {} and all below it, if it bears pgdyno's marker",
            place.display()
        ));
        lines
    }

    /// Returns the least time that the probe takes. The sequential write, which has no fixed time,
    /// comes on top.
    pub fn least_time(&self) -> Duration {
        self.points.iter().filter_map(|p| p.for_).sum()
    }

    /// Returns the curves that are left out, and why.
    pub fn not_measured(&self) -> Vec<String> {
        if !self.is_device {
            return Vec::new();
        }
        vec![format!(
            "writes: they would destroy what is on {}; name a directory on a filesystem there",
            self.path.display()
        )]
    }

    /// Measures every point. All that was made is removed, however the probe ends. On `stop` it
    /// returns the points measured so far.
    ///
    /// # Errors
    /// [`ProbeError`]: nothing could be measured.
    pub fn measure(
        &self,
        journal: &Journal,
        progress: Progress<'_>,
        stop: &AtomicBool,
    ) -> Result<(StorageFacts, DiskProbe), ProbeError> {
        let (storage, needed) = match self.is_device {
            true => (facts::device(&self.path, self.span), Bytes(0)),
            false => (facts::storage("", &self.path)?, self.span),
        };
        let place = ProbeDirectory::make(&self.parent(), needed, self.size, journal, stop)?;
        let file = self.file(place.path());
        let direct = self.prepare(&file).map_err(ProbeError::io("make", &file))?;
        let mut probe = DiskProbe {
            driver: self.fio.as_ref().map_or_else(|| builtin::NAME.to_owned(), fio::Fio::name),
            direct,
            span: self.span,
            seconds_per_point: self.per_point.as_secs_f64(),
            points: Vec::new(),
            not_measured: self.not_measured(),
            complete: true,
            warnings: Vec::new(),
            trimmed: false,
        };
        for (done, point) in self.points.iter().enumerate() {
            let share = share(done, self.points.len());
            progress(&format!("disk probe of {}", self.path.display()), share);
            let (place, is_read_only) = (place.path(), self.is_device);
            let measured = match &self.fio {
                Some(fio) => fio.measure(point, &file, place, is_read_only, direct, journal, stop),
                None => builtin::measure(point, &file, direct, stop),
            };
            match measured {
                Ok(measured) => probe.points.push(measured),
                Err(e) if probe.points.is_empty() => return Err(e),
                Err(e) => {
                    probe.complete = false;
                    if e.kind() == FailureKind::Interrupted {
                        break;
                    }
                    probe.not_measured.push(format!("{}: {}", point.label(), with_causes(&e)));
                }
            }
        }
        probe.warnings = implausible::disk_curves(&storage, &probe);
        Ok((storage, probe))
    }

    /// Makes the file that is measured, with all its room. Returns whether the file, or the device,
    /// can be read past the page cache.
    fn prepare(&self, file: &Path) -> io::Result<bool> {
        if !self.is_device {
            let made = File::create_new(file)?;
            match rustix::fs::fallocate(&made, FallocateFlags::empty(), 0, self.span.0) {
                // Filesystems that cannot promise room get it by the sequential write.
                Err(rustix::io::Errno::OPNOTSUPP) => made.set_len(self.span.0)?,
                other => other?,
            }
        }
        match open(file, !self.is_device, OFlags::DIRECT) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Returns where the probe's own directory is made: fio's output needs one for a device, too.
    fn parent(&self) -> PathBuf {
        if self.is_device { std::env::temp_dir() } else { self.path.clone() }
    }

    /// Returns the file or device that is read and written.
    fn file(&self, place: &Path) -> PathBuf {
        if self.is_device { self.path.clone() } else { place.join(FILE) }
    }
}

/// Returns all points: the file is filled first, so that what is read later was written, and random
/// writes find blocks.
fn points(zone: u64, zones: u64, per_point: Duration) -> Vec<Planned> {
    let sequential = |pattern, for_| {
        (0..zones).map(move |z| Planned {
            pattern,
            block_bytes: SEQUENTIAL_BYTES,
            queue_depth: SEQUENTIAL_DEPTH,
            offset: z * zone,
            length: zone,
            for_,
        })
    };
    let random = |pattern| {
        DEPTHS.into_iter().map(move |queue_depth| Planned {
            pattern,
            block_bytes: RANDOM_BYTES,
            queue_depth,
            offset: 0,
            length: zone * zones,
            for_: Some(per_point),
        })
    };
    sequential(Pattern::Write, None)
        .chain(sequential(Pattern::Read, Some(per_point)))
        .chain(random(Pattern::RandRead))
        .chain(random(Pattern::RandWrite))
        .chain(random(Pattern::RandRw))
        .collect()
}

#[cfg(test)]
mod tests;
