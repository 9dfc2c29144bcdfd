//! Pages in memory and the frames behind them: addresses that live as long as their mapping, and
//! `/proc/self/pagemap`.
//!
//! Source: the kernel's `pagemap.rst`. Frame numbers are zero for who lacks CAP_SYS_ADMIN. In a
//! virtual machine they number the guest's frames: whoever reads colors from them must prove by
//! timing that they act.

use crate::geometry::PAGE;
use machine::memory::Area;
use std::fs::File;
use std::marker::PhantomData;
use std::os::unix::fs::FileExt;

/// A page that is mapped, present and readable for as long as `'a`.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    at: *const u8,
    _mapping: PhantomData<&'a ()>,
}

// SAFETY: a page is only ever read, one volatile word at a time, whose value nothing depends on.
unsafe impl Send for Page<'_> {}
// SAFETY: as above.
unsafe impl Sync for Page<'_> {}

impl<'a> Page<'a> {
    /// A page of an area.
    ///
    /// # Panics
    /// The area has no such page.
    pub fn of(area: &'a Area, index: usize) -> Self {
        assert!(
            (index + 1) * PAGE <= area.size(),
            "page {index} is outside of the area"
        );
        Page {
            // SAFETY: within the area, which lives for `'a`.
            at: unsafe { area.base().cast::<u8>().add(index * PAGE) },
            _mapping: PhantomData,
        }
    }

    /// A page by its address.
    ///
    /// # Safety
    /// A whole page is mapped and readable there for as long as `'a`.
    pub unsafe fn at(address: *const u8) -> Self {
        Page {
            at: address,
            _mapping: PhantomData,
        }
    }

    /// The page that the first byte of a value lies in: mapped and readable for as long as the
    /// value is borrowed.
    pub fn under<T: ?Sized>(value: &'a T) -> Self {
        let address = std::ptr::from_ref(value).cast::<u8>();
        Page {
            at: address.wrapping_sub(address as usize % PAGE),
            _mapping: PhantomData,
        }
    }

    /// The page of this program's code that holds an address; `None` where there is no code, or it
    /// cannot be read.
    pub fn of_code(address: usize) -> Option<Page<'static>> {
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        let is_code = maps.lines().any(|line| {
            let mut words = line.split_whitespace();
            let range = words.next().and_then(|r| r.split_once('-'));
            let parse = |text: &str| usize::from_str_radix(text, 16).ok();
            let within = range.is_some_and(|(start, end)| {
                parse(start).is_some_and(|s| s <= address)
                    && parse(end).is_some_and(|e| address < e)
            });
            within && words.next() == Some("r-xp")
        });
        is_code.then_some(Page {
            at: (address & !(PAGE - 1)) as *const u8,
            _mapping: PhantomData,
        })
    }

    /// Where it is.
    pub fn address(self) -> usize {
        self.at as usize
    }

    /// Reads the word at an offset.
    #[inline(always)]
    pub fn read(self, offset: usize) -> u64 {
        debug_assert!(offset + 8 <= PAGE);
        // SAFETY: within the page (callers step through its lines), which is mapped for `'a`.
        unsafe { self.at.add(offset).cast::<u64>().read_volatile() }
    }
}

/// All pages of an area.
pub fn pages(area: &Area) -> Vec<Page<'_>> {
    (0..area.size() / PAGE).map(|i| Page::of(area, i)).collect()
}

/// What the system tells everybody about the pages of this process: `/proc/self/pagemap`.
#[derive(Debug)]
pub struct PageMap(File);

impl PageMap {
    /// Of this process; `None` where there is no such file.
    pub fn of_this_process() -> Option<Self> {
        File::open("/proc/self/pagemap").ok().map(PageMap)
    }

    fn entry(&self, address: usize) -> Option<u64> {
        let mut entry = [0; 8];
        self.0
            .read_exact_at(&mut entry, (address / PAGE * 8) as u64)
            .ok()?;
        Some(u64::from_ne_bytes(entry))
    }

    /// Is nothing mapped at an address? No where that is not known. A page that is being moved is
    /// there.
    pub fn is_empty(&self, address: usize) -> bool {
        const PRESENT_OR_MOVING: u64 = 1 << 63 | 1 << 62;
        self.entry(address)
            .is_some_and(|entry| entry & PRESENT_OR_MOVING == 0)
    }
}

/// Which frames are behind pages.
#[derive(Debug)]
pub struct FrameNumbers(PageMap);

impl FrameNumbers {
    /// Of this process; `None` where the system tells no frame numbers.
    pub fn of_this_process() -> Option<Self> {
        let numbers = FrameNumbers(PageMap::of_this_process()?);
        let here = Box::new(1_u64);
        let page = (&raw const *here as usize) & !(PAGE - 1);
        numbers.of_address(page).map(|_| numbers)
    }

    /// The frame behind an address; `None` where nothing is present or the number is withheld.
    pub fn of_address(&self, address: usize) -> Option<u64> {
        const PRESENT: u64 = 1 << 63;
        const FRAME: u64 = (1 << 55) - 1;
        let entry = self.0.entry(address)?;
        (entry & PRESENT != 0 && entry & FRAME != 0).then_some(entry & FRAME)
    }

    /// The frames of pages, in their order.
    pub fn of(&self, pages: &[Page<'_>]) -> Vec<Option<u64>> {
        pages.iter().map(|p| self.of_address(p.address())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Bytes;

    #[test]
    fn pages_of_an_area_follow_each_other() {
        let area = Area::map(Bytes::from_kib(16)).unwrap();
        let pages = pages(&area);
        assert_eq!(pages.len(), 4);
        assert!(
            pages
                .windows(2)
                .all(|w| w[1].address() - w[0].address() == PAGE)
        );
        assert_eq!(pages[3].read(0), 1, "mapping wrote the first word");
    }

    #[test]
    fn values_and_code_lie_in_pages() {
        let value = 7_u64;
        let page = Page::under(&value);
        assert_eq!(page.address() % PAGE, 0);
        let offset = &raw const value as usize - page.address();
        assert!(offset < PAGE);
        assert_eq!(page.read(offset), 7);
        let code = values_and_code_lie_in_pages as fn() as usize;
        assert_eq!(
            Page::of_code(code).map(Page::address),
            Some(code & !(PAGE - 1))
        );
        assert!(
            Page::of_code(&raw const value as usize).is_none(),
            "data is no code"
        );
    }
}
