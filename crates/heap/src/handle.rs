//! A heap by its color: for collections and boxes of their own.

use crate::alloc::arena::ARENA;
use crate::alloc::{heap, thread};
use allocator_api2::alloc::{AllocError, Allocator};
use model::{Error, Result};
use std::alloc::Layout;
use std::ptr::{NonNull, slice_from_raw_parts_mut};

/// A heap of one heap color. An allocator of `allocator-api2`: `Vec::new_in(heap)`,
/// `Box::new_in(value, heap)`.
///
/// ```no_run
/// use allocator_api2::vec::Vec;
/// heap::attach(&heap::Options::from_env()?)?;
/// let coefficients: Vec<f64, _> = Vec::with_capacity_in(512, heap::Heap::color(3)?);
/// # Ok::<(), model::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Heap(u16);

impl Heap {
    /// The heap of a color.
    ///
    /// # Errors
    /// The color is beyond the last one; the process is not attached to the memory server.
    pub fn color(color: u16) -> Result<Self> {
        if !ARENA.is_open() {
            return Err(Error::new("this process has no colored heaps")
                .remedy("attach it to the memory server first: `heap::attach`"));
        }
        let heaps = ARENA.heaps();
        if usize::from(color) >= heaps {
            return Err(Error::new(format!(
                "color {color} is beyond the last one: there are {heaps} colors"
            ))
            .remedy(format!("choose among 0-{}", heaps - 1)));
        }
        Ok(Heap(color))
    }

    /// Where memory is taken from: the color that was named, or that of the task where tasks
    /// choose.
    fn index(self) -> usize {
        if thread::BY_TASK.load(std::sync::atomic::Ordering::Relaxed) {
            thread::default_heap()
        } else {
            usize::from(self.0)
        }
    }

    /// Memory of this color; `None` where no more can be had, which was said on standard error.
    #[inline]
    pub fn alloc(self, layout: Layout) -> Option<NonNull<u8>> {
        NonNull::new(heap::allocate(self.index(), layout.size(), layout.align()))
    }

    /// Gives memory back.
    ///
    /// # Safety
    /// It was handed out by a heap, of whatever color, and nobody uses it any more.
    ///
    /// # Panics
    /// The memory is in no heap.
    #[inline]
    pub unsafe fn dealloc(self, at: NonNull<u8>) {
        // SAFETY: the caller's.
        let known = unsafe { heap::release(at.as_ptr()) };
        assert!(
            known,
            "memory was given back to a heap that it did not come from"
        );
    }

    /// Another size, in its place if it can be; `None`, and nothing changed, where no more can be
    /// had.
    ///
    /// # Safety
    /// As [`Heap::dealloc`] for the old address, which is given back when another comes.
    #[inline]
    pub unsafe fn realloc(
        self,
        at: NonNull<u8>,
        layout: Layout,
        size: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: the caller's.
        NonNull::new(unsafe { heap::reallocate(at.as_ptr(), size, layout.align()) })
    }

    /// The heap color and the page color of memory, if a heap handed it out.
    pub fn of<T>(at: *const T) -> Option<(u16, partition::Color)> {
        ARENA.owns(at.cast()).then(|| {
            let (heap, slot) = ARENA.place(at.cast());
            (heap as u16, partition::Color(ARENA.color(heap, slot)))
        })
    }
}

// SAFETY: blocks are disjoint, aligned and as large as asked, and stay where they are; copies of a
// handle name the same heap.
unsafe impl Allocator for Heap {
    #[inline]
    fn allocate(&self, layout: Layout) -> std::result::Result<NonNull<[u8]>, AllocError> {
        let at = self.alloc(layout).ok_or(AllocError)?;
        NonNull::new(slice_from_raw_parts_mut(at.as_ptr(), layout.size())).ok_or(AllocError)
    }

    #[inline]
    unsafe fn deallocate(&self, at: NonNull<u8>, _: Layout) {
        // SAFETY: the caller's.
        unsafe { self.dealloc(at) };
    }
}

/// The calling thread is the task of this number: where tasks choose colors, its memory has color
/// number modulo colors.
///
/// # Errors
/// There is no memory to remember it.
pub fn set_task(number: usize) -> Result<()> {
    if thread::set_task(number) {
        Ok(())
    } else {
        Err(Error::new("no memory to remember the number of a task").remedy("free memory"))
    }
}

/// How many heap colors this process has; 0 before it attached.
pub fn colors() -> usize {
    if ARENA.is_open() { ARENA.heaps() } else { 0 }
}

/// The heap that memory comes from when a color is named: that color, or the task's where tasks
/// choose.
pub fn chosen(color: u16) -> usize {
    Heap(color).index()
}
