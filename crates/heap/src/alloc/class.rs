//! Size classes: multiples of 16 bytes up to 128, then four for each doubling, so that at most a
//! fifth of a block is rounding.

/// Bytes of a slot: a tile of the memory server.
pub const SLOT: usize = 64 * 1024;
/// Bytes at the beginning of a slot that describe it.
pub const HEADER: usize = 128;
/// How many classes there are.
pub const CLASSES: usize = 38;
/// The largest block that shares a slot with another.
pub const LARGEST: usize = 32_704;
/// What every block is aligned to.
pub const ALIGN: usize = 16;

/// Bytes of the blocks of each class.
pub const SIZES: [u32; CLASSES] = sizes();

const _: () = assert!(2 * LARGEST + HEADER <= SLOT && 3 * SIZES[36] as usize + HEADER <= SLOT);

const fn sizes() -> [u32; CLASSES] {
    let mut sizes = [0; CLASSES];
    let mut class = 0;
    while class < 8 {
        sizes[class] = 16 * (class as u32 + 1);
        class += 1;
    }
    while class < 36 {
        let doubling = (class as u32 - 8) / 4;
        let quarter = (class as u32 - 8) % 4 + 1;
        sizes[class] = (128 << doubling) + (32 << doubling) * quarter;
        class += 1;
    }
    // Three and two in a slot.
    sizes[36] = 21_760;
    sizes[37] = LARGEST as u32;
    sizes
}

/// The class that holds a size, at most [`LARGEST`].
#[inline(always)]
pub fn class_of(size: usize) -> usize {
    if size <= 128 {
        return size.saturating_sub(1) / 16;
    }
    let last = size - 1;
    let bit = (usize::BITS - 1 - last.leading_zeros()) as usize;
    let class = 8 + (bit - 7) * 4 + (last >> (bit - 2) & 3);
    if class < CLASSES { class } else { CLASSES - 1 }
}

#[cfg(all(test, not(warmset_preload)))]
mod tests {
    use super::*;

    #[test]
    fn every_size_gets_the_smallest_class_that_holds_it() {
        for size in 0..=LARGEST {
            let class = class_of(size);
            assert!(SIZES[class] as usize >= size, "{size} in {class}");
            // Of the last two classes some sizes skip one, which keeps the formula simple.
            if class > 0 && class < 36 {
                assert!(
                    (SIZES[class - 1] as usize) < size.max(1),
                    "{size} in {class}"
                );
            }
        }
        assert!(SIZES.windows(2).all(|w| w[0] < w[1]));
        assert!(SIZES.iter().all(|s| (*s as usize).is_multiple_of(ALIGN)));
    }
}
