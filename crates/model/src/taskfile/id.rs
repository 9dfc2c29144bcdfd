//! What identifies a set of a batch: any JSON, of a bounded number of values.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// As many values an `id` has: each takes far more memory than text.
pub(super) const MOST_VALUES: usize = 1_000;

/// Reads an `id`.
pub(super) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
    let mut left = MOST_VALUES;
    Id { left: &mut left }.deserialize(from)
}

/// Reads a value if there are values left.
struct Id<'a> {
    left: &'a mut usize,
}

impl Id<'_> {
    fn inner(&mut self) -> Id<'_> {
        Id { left: self.left }
    }
}

impl<'de> DeserializeSeed<'de> for Id<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        *self.left = self.left.checked_sub(1).ok_or_else(|| {
            D::Error::custom(format_args!("the `id` has more than {MOST_VALUES} values"))
        })?;
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Id<'_> {
    type Value = Value;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_seq<A: SeqAccess<'de>>(mut self, mut from: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = from.next_element_seed(self.inner())? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }
    fn visit_map<A: MapAccess<'de>>(mut self, mut from: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some(key) = from.next_key()? {
            values.insert(key, from.next_value_seed(self.inner())?);
        }
        Ok(Value::Object(values))
    }
}
