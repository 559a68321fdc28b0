//! Receive buffers that the kernel takes from a ring, for all connections.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

/// Size of a buffer (bytes). The server sends long results 8 KiB at a time, and often a second
/// piece arrives before the first is read.
const SIZE: usize = 16 * 1024;
/// Distance from one buffer to the next (bytes). With a power of two, the beginnings of all
/// buffers, which short replies fill, would compete for few cache sets.
const STRIDE: usize = SIZE + 128;
/// Buffers at most: as many as replies may arrive between two turns.
///
/// The kernel uses all in turn, so that more buffers are less often in a cache. A receive that
/// finds none is started again.
const MAX: u16 = 128;
/// Alignment that the kernel demands of the ring.
const PAGE: usize = 4096;

/// Buffers of one `io_uring`, all in one group.
pub(super) struct ReceiveBuffers {
    /// `count` entries; the kernel reads those before its tail.
    ring: *mut BufRingEntry,
    layout: Layout,
    memory: Box<[u8]>,
    count: u16,
    tail: u16,
}

// SAFETY: the memory behind `ring` is this value's own, and nothing about it belongs to a thread.
unsafe impl Send for ReceiveBuffers {}

impl ReceiveBuffers {
    /// Number of the group.
    pub(super) const GROUP: u16 = 0;

    /// Allocates buffers for `connections` and registers them with the kernel.
    ///
    /// # Errors
    /// The kernel refuses the ring.
    pub(super) fn register(connections: usize, submitter: &Submitter<'_>) -> io::Result<Self> {
        let count =
            u16::try_from(connections.next_power_of_two().clamp(32, MAX.into())).unwrap_or(MAX);
        let size = usize::from(count) * size_of::<BufRingEntry>();
        let layout = Layout::from_size_align(size, PAGE).map_err(io::Error::other)?;
        // SAFETY: the layout's size is not zero.
        let ring = unsafe { alloc_zeroed(layout) };
        if ring.is_null() {
            handle_alloc_error(layout);
        }
        let mut buffers = Self {
            ring: ring.cast(),
            layout,
            memory: vec![0; usize::from(count) * STRIDE].into_boxed_slice(),
            count,
            tail: 0,
        };
        for id in 0..count {
            buffers.give_back(id);
        }
        // SAFETY: the ring has `count` entries and lives until `self` is dropped, which the owner
        // lets happen after the `io_uring` is gone.
        unsafe {
            submitter.register_buf_ring_with_flags(buffers.ring as u64, count, Self::GROUP, 0)?;
        };
        Ok(buffers)
    }

    /// Returns the first `length` bytes of buffer `id`, which the kernel has filled.
    pub(super) fn filled(&self, id: u16, length: usize) -> &[u8] {
        let begin = usize::from(id) * STRIDE;
        &self.memory[begin..begin + length.min(SIZE)]
    }

    /// Returns buffer `id` to the kernel.
    pub(super) fn give_back(&mut self, id: u16) {
        let begin = usize::from(id) * STRIDE;
        let address = self.memory[begin..begin + SIZE].as_mut_ptr() as u64;
        let slot = usize::from(self.tail & (self.count - 1));
        // SAFETY: `slot` is below the ring's `count` of zeroed entries, and one beyond what the
        // kernel may read yet.
        let entry = unsafe { &mut *self.ring.add(slot) };
        entry.set_addr(address);
        entry.set_len(u32::try_from(SIZE).unwrap_or_default());
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the first entry's reserved field is the ring's tail, which only this side writes;
        // the kernel reads entries before it once it is stored.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.ring).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }
}

impl Drop for ReceiveBuffers {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and its owner drops the `io_uring` first.
        unsafe { dealloc(self.ring.cast(), self.layout) };
    }
}
