//! Memory of the arena: slots are found for a run of tiles, mapped, and given back.

use super::super::class::SLOT;
use super::super::sys;
use super::Arena;
use super::slots::{Books, NO_TILE, Slot, Use, is_tile};
use core::sync::atomic::Ordering;

impl Arena {
    /// Gives back the tiles of free slots; says how many.
    pub fn trim(&self) -> usize {
        (0..self.heaps())
            .map(|heap| self.with(heap, |books| self.trim_books(books, heap)))
            .sum()
    }

    pub(super) fn trim_books(&self, books: &mut Books, heap: usize) -> usize {
        let Some(source) = self.source() else {
            return 0;
        };
        let mut given = 0;
        let mut tiles = [0; 64];
        let mut number = 0;
        for slot in 0..books.high {
            let it = books.slot(slot);
            if it.usage != Use::Idle {
                continue;
            }
            // SAFETY: a free slot, which nobody uses.
            if !unsafe { sys::plain_at(self.address(heap, slot), SLOT, 0) } {
                continue;
            }
            let tile = it.tile;
            it.usage = Use::Nothing;
            if is_tile(tile) {
                tiles[number] = tile;
                number += 1;
                given += 1;
            }
            if number == tiles.len() {
                (source.give_back)(&tiles);
                number = 0;
            }
        }
        if number > 0 {
            (source.give_back)(&tiles[..number]);
        }
        if given > 0 {
            (books.wait, books.pause) = (0, 0);
        }
        given
    }

    /// The first free slots that follow each other, mapped.
    pub(super) fn find(&self, books: &mut Books, heap: usize, number: usize) -> Option<usize> {
        let mut slot = books.hint;
        let mut run = 0;
        let all = self.slots();
        while slot < all {
            run = if books.is_free(slot) { run + 1 } else { 0 };
            slot += 1;
            if run == number {
                let first = slot - number;
                return self.map(books, heap, first, number).then_some(first);
            }
            // Beyond, all is free.
            if slot > books.high && run + (all - slot) < number {
                return None;
            }
        }
        None
    }

    /// Maps tiles to those of these slots that have none, or ordinary memory where that is allowed.
    pub(super) fn map(&self, books: &mut Books, heap: usize, first: usize, number: usize) -> bool {
        const AT_ONCE: usize = 64;
        let Some(source) = self.source() else {
            return false;
        };
        let mut slot = first;
        while slot < first + number {
            if books.slot(slot).usage != Use::Nothing {
                slot += 1;
                continue;
            }
            let mut colors = [0; AT_ONCE];
            let mut tiles = [0; AT_ONCE];
            let mut wanted = 0;
            while wanted < AT_ONCE
                && slot + wanted < first + number
                && books.slot(slot + wanted).usage == Use::Nothing
            {
                colors[wanted] = self.color(heap, slot + wanted);
                wanted += 1;
            }
            let at = self.address(heap, slot);
            let mut got = match source.ordinary && books.wait > 0 {
                true => 0,
                false => (source.fetch)(at, &colors[..wanted], &mut tiles[..wanted]),
            };
            if source.ordinary {
                let lacking = wanted - got;
                books.note_lack(lacking, got > 0);
                let rest = at.wrapping_add(got * SLOT);
                let right = sys::READ | sys::WRITE;
                // SAFETY: slots of this region in which nothing is mapped.
                if lacking > 0 && unsafe { sys::plain_at(rest, lacking * SLOT, right) } {
                    tiles[got..wanted].fill(NO_TILE);
                    got = wanted;
                }
            }
            books.high = books.high.max(slot + got);
            for (i, tile) in tiles.iter().enumerate().take(got) {
                *books.slot(slot + i) = Slot {
                    tile: *tile,
                    usage: Use::Idle,
                    zero: true,
                    pages: 0,
                    restricted: false,
                };
            }
            if got < wanted {
                return false;
            }
            slot += got;
        }
        true
    }

    pub(super) fn mark(
        &self,
        books: &mut Books,
        first: usize,
        number: usize,
        usage: Use,
    ) -> (usize, bool) {
        let mut zero = true;
        let mut ordinary = 0;
        for slot in first..first + number {
            let it = books.slot(slot);
            zero &= it.zero;
            ordinary += usize::from(it.tile == NO_TILE);
            it.usage = usage;
            it.zero = false;
            it.pages = u16::MAX;
        }
        if ordinary > 0 {
            let now = self.ordinary.fetch_add(ordinary, Ordering::Relaxed) + ordinary;
            self.most_ordinary.fetch_max(now, Ordering::Relaxed);
        }
        if first == books.hint {
            books.hint = first + number;
        }
        (first, zero)
    }

    /// Room for the books of a thread, in the color of the heap; aligned to cache lines, zeroed,
    /// never given back.
    pub fn room(&self, heap: usize, size: usize) -> Option<*mut u8> {
        let size = size.next_multiple_of(64);
        loop {
            let got = self.with(heap, |books| {
                (books.meta_left >= size).then(|| {
                    let got = books.meta;
                    // Within the slot.
                    books.meta = got.wrapping_add(size);
                    books.meta_left -= size;
                    got
                })
            });
            if got.is_some() {
                return got;
            }
            let (at, zero) = self.take(heap, 1, Use::Span)?;
            if !zero {
                // SAFETY: a slot that was just taken.
                unsafe { at.write_bytes(0, SLOT) };
            }
            self.with(heap, |books| {
                books.meta = at;
                books.meta_left = SLOT;
            });
        }
    }
}
