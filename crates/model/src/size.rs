//! Sizes of memory in bytes, read and written as people write them (`256KiB`).

use crate::error::{Error, Result};
use crate::time::serde_as_text;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

impl Bytes {
    /// From bytes.
    pub const fn new(bytes: u64) -> Self {
        Bytes(bytes)
    }
    /// From KiB (1024 bytes); saturates.
    pub const fn from_kib(kib: u64) -> Self {
        Bytes(kib.saturating_mul(1024))
    }
    /// From MiB; saturates.
    pub const fn from_mib(mib: u64) -> Self {
        Bytes(mib.saturating_mul(1024 * 1024))
    }
    /// In bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// In KiB, for people and plots.
    pub fn as_kib_f64(self) -> f64 {
        self.0 as f64 / 1024.0
    }
}

/// Sizes are powers of 1024 here; `KB` is read as `KiB`, which is what the papers and cache data
/// sheets mean by it.
const UNITS: [(&str, u32); 8] = [
    ("b", 0),
    ("kib", 1),
    ("kb", 1),
    ("k", 1),
    ("mib", 2),
    ("mb", 2),
    ("gib", 3),
    ("m", 2),
];

impl FromStr for Bytes {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::new(format!("`{text}` is not a size"))
                .remedy("write a whole number with its unit, such as `256KiB`, `3MiB` or `64B`")
        };
        let t = text.trim();
        let split = t.find(|c: char| !c.is_ascii_digit()).unwrap_or(t.len());
        let (number, unit) = (&t[..split], t[split..].trim().to_lowercase());
        if number.is_empty() {
            return Err(bad());
        }
        if unit.is_empty() {
            return Err(Error::new(format!("`{text}` has no unit"))
                .remedy("write `B`, `KiB`, `MiB` or `GiB` behind the number"));
        }
        let power = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, p)| *p)
            .ok_or_else(bad)?;
        number
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(1024u64.pow(power)))
            .map(Bytes)
            .ok_or_else(|| {
                Error::new(format!("`{text}` is too large"))
                    .remedy("sizes must stay below 2^64 bytes")
            })
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = match self.0 {
            b if b >= 1 << 30 && b % (1 << 30) == 0 => ("GiB", 1 << 30),
            b if b >= 1 << 20 && b % (1 << 20) == 0 => ("MiB", 1 << 20),
            b if b >= 1 << 10 && b % (1 << 10) == 0 => ("KiB", 1 << 10),
            _ => ("B", 1),
        };
        f.pad(&format!("{}{unit}", self.0 / scale))
    }
}
impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
serde_as_text!(Bytes);

/// Writes a size, or none, as a whole number of bytes: for fields `…_bytes` of documents, by
/// `serialize_with`.
///
/// # Errors
/// Those of the serializer.
pub fn whole<S: Serializer>(
    size: &(impl Copy + Into<Option<Bytes>>),
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    let size: Option<Bytes> = (*size).into();
    size.map(Bytes::get).serialize(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_and_write() {
        for (text, bytes, again) in [
            ("256KiB", 256 << 10, "256KiB"),
            ("3 MB", 3 << 20, "3MiB"),
            ("64B", 64, "64B"),
            ("1536KiB", 1536 << 10, "1536KiB"),
            ("48K", 48 << 10, "48KiB"),
        ] {
            let size: Bytes = text.parse().unwrap();
            assert_eq!(
                (size.get(), size.to_string().as_str()),
                (bytes, again),
                "{text}"
            );
        }
        for text in [
            "",
            "KiB",
            "12",
            "1.5MiB",
            "99999999999999999999B",
            "18446744073709551615KiB",
        ] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }
}
