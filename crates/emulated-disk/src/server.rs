//! The process that serves a disk. It is pgdyno's own program in another process, so that the death
//! of the one that wanted the disk takes nothing from under a mounted filesystem; it ends when its
//! mount is taken down.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use pgdyno_exec::files::{nofollow, write_new};
use pgdyno_exec::process::{current_owner, is_alive};
use pgdyno_exec::service::DIRECTORY;
use pgdyno_exec::service_paths::{
    Order, ServerId, mount_point_of, order_of, server_id_of, source_of,
};
use pgdyno_model::storage::EmulatedDisk;

use super::control::{self, Request, Response};
use super::disk_log::{DiskLog, LogWriter, log_file};
use super::fuse;
use super::layers::{Layers, ShownLog, upper_file};
use super::medium::image_of;
use super::model::Disk;
use super::published::{Published, flush_file, position_file};
use super::serve_error::ServeError;
use super::shared::Shared;
use super::states::State;

/// Serves the disk that the environment names until it is unmounted: `pgdyno emulated-disk`.
pub fn serve() -> Result<(), ServeError> {
    let directory = std::env::var_os(DIRECTORY).map(PathBuf::from).ok_or(ServeError::NotAsked)?;
    let failed = |what, path: &Path| {
        let path = path.to_owned();
        move |source| ServeError::Io { what, path, source }
    };
    let order_file = order_of(&directory);
    let order: Order = fs::read(&order_file)
        .and_then(|text| Ok(serde_json::from_slice(&text)?))
        .map_err(failed("read", &order_file))?;
    let id_file = server_id_of(&directory);
    let me = current_owner().map_err(failed("tell the process that writes", &id_file))?;
    let id = ServerId { pid: me.pid, started_ticks: me.started_ticks };
    serde_json::to_vec(&id)
        .map_err(io::Error::from)
        .and_then(|text| write_new(&id_file, &text))
        .map_err(failed("write", &id_file))?;
    // Waits end when they are due, not up to 50 µs later; threads inherit it. Where it cannot be
    // set they end later.
    let _ = fs::write("/proc/self/timerslack_ns", "1");
    let disk: EmulatedDisk =
        serde_json::from_value(order.task).map_err(|e| failed("read", &order_file)(e.into()))?;
    let image = image_of(&directory);
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(nofollow())
        .open(&image)
        .and_then(|file| file.set_len(disk.size.0).map(|()| file))
        .map_err(failed("make", &image))?;
    let log = match disk.log {
        true => {
            let path = log_file(&directory);
            Some(LogWriter::create(&path, disk.size.0).map_err(failed("make", &path))?)
        }
        false => None,
    };
    let layers = Layers::new(file, disk.size.0);
    let model = Disk::new(layers, disk.size.0, disk.cache.0, disk.seed, log);
    let shared = Shared::new(directory.clone(), model, disk.size.0, &disk.latency);
    let shared = Arc::new(shared);
    let listener = control::listen(&directory).map_err(failed("listen in", &directory))?;
    // Right before the mount: from then on a sweep finds it.
    if !is_alive(&order.owner) {
        return Err(ServeError::Orphaned);
    }
    let point = mount_point_of(&directory);
    let session = fuse::mount(Arc::clone(&shared), &point, &source_of(&directory))
        .map_err(failed("mount a FUSE filesystem on", &point))?;
    let clock = Arc::clone(&shared);
    std::thread::spawn(move || clock.answer_in_time());
    std::thread::spawn(move || listen(&listener, &shared));
    session.run().map_err(failed("serve", &point))
}

fn listen(listener: &UnixListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        // One that went away while it was taken asks nothing.
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || converse(stream, &shared));
    }
}

fn converse(stream: UnixStream, shared: &Shared) {
    let mut stream = BufReader::new(stream);
    // It ends when the other side has closed, or says what is no request.
    while let Ok(Some(request)) = control::receive(&mut stream) {
        let response = answer(request, shared);
        if control::send(stream.get_mut(), &response).is_err() {
            return;
        }
    }
}

fn answer(request: Request, shared: &Shared) -> Response {
    let done = |result: io::Result<()>| match result {
        Ok(()) => Response::Done,
        Err(e) => Response::Refused(e.to_string()),
    };
    match request {
        Request::Status => return Response::Status(Box::new(shared.disk().status())),
        Request::Arm(rule) => return Response::Armed(shared.disk().arm(rule)),
        Request::BeginBaseline => return done(shared.disk().begin_baseline()),
        Request::SyncLog => return done(shared.disk().sync_log()),
        Request::Record => return done(record(shared)),
        Request::PublishFlushes(on) => return done(publish_flushes(shared, on)),
        Request::Show { state, of } => return done(show(shared, &state, &of)),
        Request::PowerOn => return done(power_on(shared)),
        Request::Disarm(id) => shared.disk().disarm(id),
        Request::Lie(on) => shared.disk().lie(on),
        Request::Seed(seed) => shared.disk().seed(seed),
        Request::Cut(cut) => shared.disk().cut(&cut),
        Request::Latency(latency) => shared.set_latency(&latency),
    }
    Response::Done
}

fn power_on(shared: &Shared) -> io::Result<()> {
    // The kernel tells of a closed file a moment later.
    let until = Instant::now() + Duration::from_secs(5);
    while shared.opened.load(Ordering::SeqCst) > 0 {
        if Instant::now() >= until {
            return Err(io::Error::other("its file is still open; detach the loop device first"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    shared.disk().power_on();
    Ok(())
}

/// Begins to record what is done to the disk, and leaves its image as it is.
fn record(shared: &Shared) -> io::Result<()> {
    let directory = &shared.directory;
    shared.disk().begin_log(|layers| {
        let log = LogWriter::create(&log_file(directory), shared.size)?;
        let position = Published::create(&position_file(directory))?;
        layers.freeze(&upper_file(directory))?;
        Ok((log, position))
    })
}

/// Begins to publish flushes, or ends it.
fn publish_flushes(shared: &Shared, on: bool) -> io::Result<()> {
    let file = flush_file(&shared.directory);
    let mut disk = shared.disk();
    disk.publish_flushes(None)?;
    match fs::remove_file(&file) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    if on { disk.publish_flushes(Some(Published::create(&file)?)) } else { Ok(()) }
}

/// Puts a state of what the disk in `of` recorded in place of the disk's contents.
fn show(shared: &Shared, state: &State, of: &Path) -> io::Result<()> {
    let mut shown = shared.shown.lock().unwrap_or_else(PoisonError::into_inner);
    let shown = &mut *shown;
    shared.disk().replace_contents(|layers: &mut Layers| {
        let log = match shown {
            Some(log) => log,
            None => {
                let path = log_file(of);
                shown.insert(ShownLog {
                    log: DiskLog::read(&path).map_err(io::Error::other)?,
                    file: Arc::new(File::open(&path)?),
                    image: File::open(image_of(of))?,
                })
            }
        };
        layers.show(log, state, &upper_file(&shared.directory))
    })
}
