//! Which of 16 bytes are equal to one: all compared at once.
//!
//! Every x86-64 processor has the instructions for it (SSE2), so that nothing is to be found out at
//! run time. Others compare eight bytes in a word.

/// A bit for each of the bytes that is equal to this one, the lowest for the first.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn equal(bytes: &[u8; 16], to: u8) -> u32 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    let [low, high] = words(bytes).map(u64::cast_signed);
    // SAFETY: every x86-64 processor has SSE2.
    unsafe {
        let wanted = _mm_set1_epi8(to.cast_signed());
        _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_set_epi64x(high, low), wanted)).cast_unsigned()
    }
}

/// The same on other processors.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn equal(bytes: &[u8; 16], to: u8) -> u32 {
    by_words(bytes, to)
}

/// Fetches the line of a value that begins with one into the caches of the machine that computes.
#[inline(always)]
pub(super) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has SSE; a prefetch reads nothing.
        unsafe { _mm_prefetch(std::ptr::from_ref(value).cast::<i8>(), _MM_HINT_T0) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Eight bytes in a word at a time.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline(always)]
fn by_words(bytes: &[u8; 16], to: u8) -> u32 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let [low, high] = words(bytes).map(|word| {
        let differ = word ^ repeated(to);
        // The top bit of each byte that is 0; no carry leaves a byte.
        let tops = !(((differ & LOW) + LOW) | differ | LOW);
        // Gathers them in the highest byte, the first in its lowest bit.
        ((tops >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
    });
    high << 8 | low
}

#[inline(always)]
fn words(bytes: &[u8; 16]) -> [u64; 2] {
    let all = u128::from_le_bytes(*bytes);
    [all as u64, (all >> 64) as u64]
}

#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline(always)]
fn repeated(byte: u8) -> u64 {
    u64::from(byte) * 0x0101_0101_0101_0101
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_by_one(bytes: &[u8; 16], to: u8) -> u32 {
        let equal = bytes.iter().enumerate().filter(|(_, byte)| **byte == to);
        equal.map(|(place, _)| 1 << place).sum()
    }

    proptest::proptest! {
        /// Few values, so that many are equal, and those next to each other among them.
        #[test]
        fn both_ways_find_the_same_as_one_by_one(
            bytes in proptest::array::uniform16(proptest::sample::select(vec![
                0_u8, 1, 2, 0x7f, 0x80, 0x81, 0xfe, 0xff,
            ])),
            to in proptest::sample::select(vec![0_u8, 1, 0x7f, 0x80, 0x81, 0xff]),
        ) {
            let expected = one_by_one(&bytes, to);
            proptest::prop_assert_eq!(equal(&bytes, to), expected);
            proptest::prop_assert_eq!(by_words(&bytes, to), expected);
        }
    }
}
