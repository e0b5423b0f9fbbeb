//! The allocator for Rust code. When memory is exhausted, Rust aborts the process, and the server then ends all
//! sessions. This allocator makes it an error of the call.
//!
//! An allocation that fails is repeated after the reserve was freed. [`check`] runs at each check for interrupts and
//! before each row. It allocates the reserve again, and raises an error if that fails. It also raises an error if so
//! much memory is allocated that collections might fail to grow. [`assure`] checks for the memory of one large step. If
//! the reserve is too small, only this session ends.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::Relaxed};

use crate::pg::error::{end_session, out_of_memory};
use faults::{has_no_reserve, is_short, must_fail};

/// The size of the reserve, in bytes. It is enough for the error, and for what a call that holds less than [`SMALL`]
/// allocates between two checks.
const RESERVE: usize = 4 << 20;

/// The bytes that a call may hold, or allocate in one step, without a check for more memory.
const SMALL: usize = 1 << 20;

/// How many bytes are allocated.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// The reserve; null while it is freed.
static RESERVED: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Whether an error of Rust is being reported to the server. If that fails, the next [`check`] resets it.
pub static IS_REPORTING: AtomicBool = AtomicBool::new(false);

/// [`check`] does nothing while the bytes held are between these two.
static LEAST: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator with a count of bytes. A backend has one thread, so plain loads and stores are exact and
/// cheaper than atomic additions. Only [`check`] reads the count.
struct Counted;

// Not in the program that runs the unit tests, which has none of the server's functions.
#[cfg_attr(not(test), global_allocator)]
#[cfg_attr(test, allow(dead_code))]
static ALLOCATOR: Counted = Counted;

// SAFETY: each block is the system's, which is given what the caller has promised. None is null: without memory the
// session ends.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised by the caller.
        let block = allocated(|| unsafe { System.alloc(layout) });
        count(0, layout.size());
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised by the caller.
        let block = allocated(|| unsafe { System.alloc_zeroed(layout) });
        count(0, layout.size());
        block
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as promised by the caller. Where it fails, the block is as it was.
        let block = allocated(|| unsafe { System.realloc(block, layout, size) });
        count(layout.size(), size);
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(block, layout) };
        count(layout.size(), 0);
    }
}

#[inline]
fn count(less: usize, more: usize) {
    HELD.store(HELD.load(Relaxed).wrapping_add(more).wrapping_sub(less), Relaxed);
}

/// The block that `allocate` returns. If it returns null, it is called again after the reserve was freed.
#[inline]
fn allocated(allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let block = if must_fail() { null_mut() } else { allocate() };
    if block.is_null() { from_reserve(allocate) } else { block }
}

#[cold]
fn from_reserve(allocate: impl Fn() -> *mut u8) -> *mut u8 {
    release_reserve();
    let block = if has_no_reserve() { null_mut() } else { allocate() };
    if block.is_null() {
        end_session();
    }
    block
}

/// Frees the reserve. The next check allocates it again.
pub fn release_reserve() {
    let reserve = RESERVED.swap(null_mut(), Relaxed);
    if !reserve.is_null() {
        // SAFETY: `take_reserve` has mapped it; nobody else has the address any more.
        unsafe { libc::munmap(reserve, RESERVE) };
    }
    // So that the next check allocates it again.
    MOST.store(0, Relaxed);
}

/// Raises an error if the reserve cannot be allocated. To be called first when the library is loaded.
pub fn expect_reserve() {
    if !can_be_had(RESERVE) {
        out_of_memory().raise();
    }
}

/// Allocates the reserve if it is freed; false if that fails. To be called last when the library is loaded.
pub fn take_reserve() -> bool {
    if RESERVED.load(Relaxed).is_null() {
        RESERVED.store(map(RESERVE), Relaxed);
    }
    !RESERVED.load(Relaxed).is_null()
}

/// Raises an error if memory is short. To be called wherever interrupts are checked.
#[inline]
pub fn check() {
    let held = HELD.load(Relaxed);
    if held < LEAST.load(Relaxed) || held > MOST.load(Relaxed) {
        check_room(held);
    }
}

/// Checks that a call that holds so many bytes can allocate what it may need until the next check. Its collections grow
/// to twice their size, and the old one is freed only after the new one was filled.
#[cold]
fn check_room(held: usize) {
    IS_REPORTING.store(false, Relaxed);
    let is_more = held > MOST.load(Relaxed);
    // Checked again when an eighth more is held.
    let most = SMALL.max(held + held / 8);
    if is_short() || !take_reserve() || is_more && held > SMALL && !can_be_had(2 * most) {
        out_of_memory().raise();
    }
    MOST.store(most, Relaxed);
    LEAST.store(if held > SMALL { held / 2 } else { 0 }, Relaxed);
}

/// Raises an error if so many bytes cannot be allocated. To be called before a step that allocates them without a
/// check.
pub fn assure(bytes: usize) {
    if bytes > SMALL && !can_be_had(bytes) {
        out_of_memory().raise();
    }
}

/// Whether so many bytes can be allocated in addition to the reserve.
fn can_be_had(bytes: usize) -> bool {
    let memory = map(bytes);
    // SAFETY: it was mapped just now.
    !memory.is_null() && unsafe { libc::munmap(memory, bytes) == 0 }
}

/// New memory, which is not written to; null if there is none.
fn map(bytes: usize) -> *mut c_void {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
    // SAFETY: maps memory of no file, at an address where there is none.
    let memory = unsafe { libc::mmap(null_mut(), bytes, access, kind, -1, 0) };
    if memory == libc::MAP_FAILED { null_mut() } else { memory }
}

#[cfg(not(feature = "failing_allocations"))]
mod faults {
    #[inline]
    pub(super) fn must_fail() -> bool {
        false
    }

    pub(super) fn has_no_reserve() -> bool {
        false
    }

    pub(super) fn is_short() -> bool {
        false
    }
}

/// A build for tests: the allocation that a setting names fails, and memory is short up to the next check. With a
/// negative value the reserve does not help.
#[cfg(feature = "failing_allocations")]
pub mod faults {
    use std::ffi::{c_int, c_void};
    use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

    use pgrx::pg_sys;

    /// How many allocations from now on the one that fails is; 0 where none does.
    static LEFT: AtomicI32 = AtomicI32::new(0);
    static IS_SHORT: AtomicBool = AtomicBool::new(false);
    static HAS_NO_RESERVE: AtomicBool = AtomicBool::new(false);

    pub(super) fn must_fail() -> bool {
        let left = LEFT.load(Relaxed);
        LEFT.store(left - left.signum(), Relaxed);
        let must_fail = left.abs() == 1;
        if must_fail {
            IS_SHORT.store(true, Relaxed);
            HAS_NO_RESERVE.store(left < 0, Relaxed);
        }
        must_fail
    }

    pub(super) fn has_no_reserve() -> bool {
        HAS_NO_RESERVE.swap(false, Relaxed)
    }

    pub(super) fn is_short() -> bool {
        IS_SHORT.swap(false, Relaxed)
    }

    /// Resets what the value before has caused.
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" fn forget(_value: c_int, _extra: *mut c_void) {
        IS_SHORT.store(false, Relaxed);
    }

    /// Registers the setting. It is the count itself: what is left of it can be read.
    pub fn register() {
        // SAFETY: the variable lives as long as the process, and the names are NUL-terminated.
        unsafe {
            pg_sys::DefineCustomIntVariable(
                c"graph_kernel.failing_allocation".as_ptr(),
                c"Sets which of the next allocations fails.".as_ptr(),
                c"Those of Rust in this session are counted.".as_ptr(),
                LEFT.as_ptr(),
                0,
                -i32::MAX,
                i32::MAX,
                pg_sys::GucContext::PGC_USERSET,
                0,
                None,
                Some(forget),
                None,
            );
        }
    }
}
