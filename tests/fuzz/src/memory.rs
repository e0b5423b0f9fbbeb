//! How much memory a call takes, by an allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What a call may take besides its input: buffers of readers.
const FREE_BYTES: usize = 1 << 20;

/// What it may take for each byte of input: two bytes, as in `[{},{}]`, make a value and what holds it.
const BYTES_PER_BYTE: usize = 256;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

struct Counting;

fn add(bytes: usize) {
    MOST.fetch_max(HELD.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: all of it is the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as the caller says.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller says.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both may be held while it is copied.
        add(size);
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller says.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The result of a call on an input of so many bytes, which must not take much more memory than that.
pub fn bounded<T>(input_bytes: usize, call: impl FnOnce() -> T) -> T {
    let before = HELD.load(Relaxed);
    MOST.store(before, Relaxed);
    let result = call();
    let most = MOST.load(Relaxed) - before;
    let allowed = FREE_BYTES + BYTES_PER_BYTE * input_bytes;
    assert!(most <= allowed, "{most} bytes are held for {input_bytes} of input");
    result
}
