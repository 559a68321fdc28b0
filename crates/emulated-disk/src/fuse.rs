//! One FUSE file that is a disk.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, Session, WriteFlags,
};
use pgdyno_exec::monotonic::MonotonicTime;

use super::disk_server::NAME;
use super::pieces::index;
use super::shared::{Job, Shared, errno};

const DISK: INodeNo = INodeNo(2);
/// Names and sizes never change.
const FOREVER: Duration = Duration::from_secs(365 * 86400);
/// The largest request (bytes).
const MAX_WRITE: u32 = 1 << 20;
/// Requests of the loop device that may be under way: more than its own queue of 128 would ever
/// send.
const MAX_BACKGROUND: u16 = 256;

/// The filesystem of one file.
pub(super) struct OneFile {
    shared: Arc<Shared>,
}

/// Mounts it; requests are served once the session runs.
pub(super) fn mount(shared: Arc<Shared>, at: &Path, name: &str) -> io::Result<Session<OneFile>> {
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName(name.to_owned()), MountOption::NoExec];
    // Two: one reads the next request while the other works.
    config.n_threads = Some(2);
    config.clone_fd = true;
    Session::new(OneFile { shared }, at, &config)
}

impl OneFile {
    fn attributes(&self, node: INodeNo) -> FileAttr {
        let (kind, perm, size, nlink) = match node {
            INodeNo::ROOT => (FileType::Directory, 0o700, 0, 2),
            _ => (FileType::RegularFile, 0o600, self.shared.size, 1),
        };
        let epoch = SystemTime::UNIX_EPOCH;
        FileAttr {
            ino: node,
            size,
            blocks: size / 512,
            atime: epoch,
            mtime: epoch,
            ctime: epoch,
            crtime: epoch,
            kind,
            perm,
            nlink,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for OneFile {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Direct I/O that does not wait for the request before it; without, the disk would serve
        // one at a time.
        let wanted = InitFlags::FUSE_ASYNC_DIO | InitFlags::FUSE_ASYNC_READ;
        config
            .add_capabilities(wanted)
            .map_err(|missing| io::Error::other(format!("this kernel's FUSE lacks {missing:?}")))?;
        let refused =
            |_| io::Error::other("this kernel's FUSE does not take the sizes of requests");
        config.set_max_write(MAX_WRITE).map_err(refused)?;
        config
            .set_max_background(MAX_BACKGROUND)
            .map_err(|_| io::Error::other("no background requests"))?;
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == NAME {
            reply.entry(&FOREVER, &self.attributes(DISK), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOREVER, &self.attributes(ino));
    }

    fn readdir(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let names = [(INodeNo::ROOT, "."), (INodeNo::ROOT, ".."), (DISK, NAME)];
        for (n, (node, name)) in (1..).zip(names).skip(index(offset)) {
            if reply.add(node, n, self.attributes(node).kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn open(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        if ino != DISK {
            return reply.error(Errno::EISDIR);
        }
        self.shared.opened.fetch_add(1, Ordering::SeqCst);
        // No page of the file is cached above the disk: what was acknowledged is in the disk's
        // hands.
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags);
    }

    fn release(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.shared.opened.fetch_sub(1, Ordering::SeqCst);
        reply.ok();
    }

    // What close(2) calls; it promises nothing.
    fn flush(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn read(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        // The file ends there.
        let length = u64::from(size).min(self.shared.size.saturating_sub(offset));
        self.shared.take(Job::Read { offset, length, reply });
    }

    fn write(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let answer = self.shared.disk().write(offset, data);
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        self.shared.take(Job::Written { answer, length, reply });
    }

    fn fsync(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        let request = self.shared.disk().begin_flush(MonotonicTime::now());
        match request {
            Ok(request) => self.shared.take(Job::Flush { request, reply }),
            Err(e) => reply.error(errno(e)),
        }
    }

    fn fallocate(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        // The loop device discards by punching holes, and writes zeros by zeroing ranges.
        let zeroing = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
        if mode & zeroing == 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let answer = self.shared.disk().discard(offset, length);
        match answer {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(errno(e)),
        }
    }
}
