//! Values that several protocols have in their `[workload]`: weights of a mix, and percents that
//! sum to 100.

use std::fmt;

use schemars::Schema;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::{Value, json};

/// Larger than any weight needs to be, small enough that sums stay exact.
pub(super) const WEIGHT_MAX: f64 = 1e6;

/// Bounds of all numbers of a table of weights, for its schema.
pub fn weights(schema: &mut Schema) {
    let bound = |weight: &mut Value| {
        weight["minimum"] = json!(0.0);
        weight["maximum"] = json!(WEIGHT_MAX);
    };
    let named = schema.get_mut("properties").and_then(Value::as_object_mut);
    named.into_iter().flat_map(|named| named.values_mut()).for_each(bound);
    schema
        .get_mut("additionalProperties")
        .filter(|any| any.is_object())
        .into_iter()
        .for_each(bound);
}

/// Reads `N` whole numbers that sum to 100.
pub fn percents<'de, D: Deserializer<'de>, const N: usize>(
    deserializer: D,
) -> Result<[u8; N], D::Error> {
    deserializer.deserialize_seq(Percents)
}

struct Percents<const N: usize>;

impl<'de, const N: usize> Visitor<'de> for Percents<N> {
    type Value = [u8; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{N} whole numbers that sum to 100")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<[u8; N], A::Error> {
        let mut percents = Vec::new();
        while let Some(percent) = items.next_element::<u8>()? {
            percents.push(percent);
        }
        let sum: u32 = percents.iter().map(|percent| u32::from(*percent)).sum();
        let length = percents.len();
        match <[u8; N]>::try_from(percents) {
            Ok(percents) if sum == 100 => Ok(percents),
            _ => Err(A::Error::invalid_length(length, &self)),
        }
    }
}
