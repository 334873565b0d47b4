//! Header blocks of replies, read as far as a client of ours asks: status, length, and whether the
//! fields are allowed. RFC 7541.
//!
//! Nothing is kept of a field but what it means, so a block costs no allocation, and a table of any
//! contents has a bounded size. Most replies have a block that the connection has seen before:
//! servers send a field in full once and by its index afterwards. A block that leaves the table as
//! it is means the same until the table changes, so [`Decoder`] knows it again by its bytes.

use std::collections::VecDeque;

use super::fields::{Field, Fields, Text};
use super::{huffman, static_table};

/// Largest table that a server may use: the standard's own default, which browsers and other load
/// tools have, too.
pub const TABLE_BYTES: u32 = 4_096;
/// Longer blocks are read each time.
const KNOWN_BLOCK_BYTES_MAX: usize = 512;
/// Blocks that are known again: as many as a short list of URLs has different replies.
const KNOWN_BLOCKS_MAX: usize = 8;

/// Why a header block cannot be decoded. The connection is of no use after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HpackError {
    /// The block ends within a field.
    #[error("it ends within a field")]
    Incomplete,
    /// A number that is over every limit.
    #[error("a number in it is too large")]
    Number,
    /// No field has this index.
    #[error("it refers to a field {0} that is not there")]
    Index(u64),
    /// A string that its Huffman code does not allow.
    #[error("a string in it is not Huffman-coded as RFC 7541 says")]
    Huffman,
    /// A table larger than we allow.
    #[error("it wants a table of {0} bytes, the client allows {TABLE_BYTES}")]
    TableSize(u64),
    /// The size of the table changes after the first field.
    #[error("it changes the size of the table after a field")]
    LateTableSize,
}

/// Reads the header blocks of one connection, in their order.
#[derive(Debug)]
pub struct Decoder {
    /// The newest first.
    table: VecDeque<Field>,
    table_bytes: u32,
    table_bytes_max: u32,
    known: Vec<Known>,
    /// The one to be replaced next.
    oldest: usize,
}

#[derive(Debug)]
struct Known {
    block: Vec<u8>,
    fields: Fields,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            table: VecDeque::new(),
            table_bytes: 0,
            table_bytes_max: TABLE_BYTES,
            known: Vec::new(),
            oldest: 0,
        }
    }
}

impl Decoder {
    /// Reads a whole block.
    pub fn read(&mut self, block: &[u8]) -> Result<Fields, HpackError> {
        if let Some(known) = self.known.iter().find(|known| known.block == block) {
            return Ok(known.fields);
        }
        let mut fields = Fields::default();
        let mut rest = block;
        let mut is_lasting = true;
        while let Some(first) = rest.first() {
            is_lasting &= !self.read_field(*first, &mut rest, &mut fields)?;
        }
        match is_lasting {
            true => self.learn(block, fields),
            false => self.forget_known(),
        }
        Ok(fields)
    }

    /// Forgets which blocks it knows; the next is read as if it were the first of its kind.
    pub fn forget_known(&mut self) {
        self.known.clear();
    }

    /// Heap bytes held now.
    pub fn held_bytes(&self) -> usize {
        let known = self.known.iter().map(|known| known.block.capacity() + size_of::<Known>());
        known.sum::<usize>() + self.table.capacity() * size_of::<Field>()
    }

    fn learn(&mut self, block: &[u8], fields: Fields) {
        if block.len() > KNOWN_BLOCK_BYTES_MAX {
            return;
        }
        if self.known.len() < KNOWN_BLOCKS_MAX {
            self.known.push(Known { block: block.to_vec(), fields });
            return;
        }
        let known = &mut self.known[self.oldest];
        known.block.clear();
        known.block.extend_from_slice(block);
        known.fields = fields;
        self.oldest = (self.oldest + 1) % KNOWN_BLOCKS_MAX;
    }

    /// Reads one field; true where it changed the table.
    fn read_field(
        &mut self,
        first: u8,
        rest: &mut &[u8],
        fields: &mut Fields,
    ) -> Result<bool, HpackError> {
        let (prefix_bits, is_kept) = match first {
            0x80.. => {
                let index = read_number(rest, 7)?;
                fields.add(self.field(index)?);
                return Ok(false);
            }
            0x40.. => (6, true),
            0x20.. => {
                let size = read_number(rest, 5)?;
                if fields.count() > 0 {
                    return Err(HpackError::LateTableSize);
                }
                self.resize(size)?;
                return Ok(true);
            }
            // Without indexing, and never indexed: the same to a reader.
            _ => (4, false),
        };
        let name = match read_number(rest, prefix_bits)? {
            0 => Field::named(&read_text(rest)?),
            index => self.field(index)?,
        };
        let field = name.with_value(&read_text(rest)?);
        fields.add(field);
        if is_kept {
            self.insert(field);
        }
        Ok(is_kept)
    }

    fn field(&self, index: u64) -> Result<Field, HpackError> {
        let missing = HpackError::Index(index);
        let at = usize::try_from(index).map_err(|_| missing)?;
        if let Some((name, value)) = static_table::field(at) {
            return Ok(Field::named(&Text::of(name)).with_value(&Text::of(value)));
        }
        let at = at.checked_sub(static_table::COUNT + 1).ok_or(missing)?;
        self.table.get(at).copied().ok_or(missing)
    }

    fn resize(&mut self, bytes: u64) -> Result<(), HpackError> {
        let small = u32::try_from(bytes).ok().filter(|bytes| *bytes <= TABLE_BYTES);
        self.table_bytes_max = small.ok_or(HpackError::TableSize(bytes))?;
        self.evict(0);
        Ok(())
    }

    fn insert(&mut self, field: Field) {
        let bytes = field.bytes();
        self.evict(bytes);
        // RFC 7541 §4.4: a field that is larger than the table empties it.
        if bytes <= self.table_bytes_max {
            self.table.push_front(field);
            self.table_bytes += bytes;
        }
    }

    /// Makes room.
    fn evict(&mut self, wanted_bytes: u32) {
        while self.table_bytes.saturating_add(wanted_bytes) > self.table_bytes_max
            && let Some(field) = self.table.pop_back()
        {
            self.table_bytes -= field.bytes();
        }
    }
}

/// RFC 7541 §5.1
fn read_number(rest: &mut &[u8], prefix_bits: u8) -> Result<u64, HpackError> {
    /// Of 7 bits each: more than any length or index needs.
    const MORE_BYTES_MAX: u32 = 5;
    let prefix_max = (1u64 << prefix_bits) - 1;
    let (first, after) = rest.split_first().ok_or(HpackError::Incomplete)?;
    *rest = after;
    let mut number = u64::from(*first) & prefix_max;
    if number < prefix_max {
        return Ok(number);
    }
    for place in 0..MORE_BYTES_MAX {
        let (byte, after) = rest.split_first().ok_or(HpackError::Incomplete)?;
        *rest = after;
        number += u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(HpackError::Number)
}

/// RFC 7541 §5.2
fn read_text(rest: &mut &[u8]) -> Result<Text, HpackError> {
    let is_coded = rest.first().is_some_and(|first| first & 0x80 != 0);
    let length = read_number(rest, 7)?;
    let length = usize::try_from(length).map_err(|_| HpackError::Number)?;
    let (string, after) = rest.split_at_checked(length).ok_or(HpackError::Incomplete)?;
    *rest = after;
    let mut text = Text::default();
    match is_coded {
        false => string.iter().for_each(|byte| text.push(*byte)),
        true if huffman::decode(string, |byte| text.push(byte)) => {}
        true => return Err(HpackError::Huffman),
    }
    Ok(text)
}
