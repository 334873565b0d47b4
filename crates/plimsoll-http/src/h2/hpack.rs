//! Header blocks of replies, read as far as our clients need: status, length, and whether the
//! fields are allowed. RFC 7541, with its static table (Appendix A) and its Huffman code (§5.2,
//! Appendix B).
//!
//! Only a field's meaning is kept, not its text, so a block costs no allocation, and a table of any
//! contents has a bounded size. Most replies have a block that the connection has seen before:
//! servers send a field in full once and by its index afterwards. A block that leaves the table as
//! it is means the same until the table changes, so [`Decoder`] recognises it by its bytes.

use std::collections::VecDeque;

use super::fields::{Field, Fields, Text};
use super::static_table::{STATIC_COUNT, static_field};

/// Largest table that a server may use: the standard's own default, which browsers and other load
/// tools have, too.
pub const TABLE_BYTES: u32 = 4_096;
/// Longer blocks are read each time.
const CACHED_BLOCK_BYTES_MAX: usize = 512;
/// Cached blocks: as many as a short list of URLs has different replies.
const CACHED_BLOCKS_MAX: usize = 8;

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
    cache: Vec<CachedBlock>,
    /// The one to be replaced next.
    oldest: usize,
    /// The strings of the fields, where they are kept.
    texts: Option<Texts>,
}

/// Name and value of a field.
type FieldText = (Vec<u8>, Vec<u8>);

/// The strings of the fields of the table, and of the last block.
#[derive(Debug, Default)]
struct Texts {
    /// The newest first, as in the table.
    table: VecDeque<FieldText>,
    block: Vec<FieldText>,
}

impl Texts {
    /// A field of the table, as one of the block.
    fn refer(&mut self, index: u64) -> Option<&FieldText> {
        let at = usize::try_from(index).ok()?;
        let field = match static_field(at) {
            Some((name, value)) => (name.as_bytes().to_vec(), value.as_bytes().to_vec()),
            None => self.table.get(at.checked_sub(STATIC_COUNT + 1)?)?.clone(),
        };
        self.block.push(field);
        self.block.last()
    }
}

#[derive(Debug)]
struct CachedBlock {
    block: Vec<u8>,
    fields: Fields,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            table: VecDeque::new(),
            table_bytes: 0,
            table_bytes_max: TABLE_BYTES,
            cache: Vec::new(),
            oldest: 0,
            texts: None,
        }
    }
}

impl Decoder {
    /// Keeps the strings of the last block from now on. No block is recognised by its bytes then.
    pub fn keep_texts(&mut self) {
        self.texts.get_or_insert_default();
    }

    /// Names and values of the last block's fields, if they are kept. No more bytes than
    /// [`super::fields::LIST_BYTES_MAX`] allows, or the block was refused.
    pub fn texts(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let block = self.texts.iter().flat_map(|texts| &texts.block);
        block.map(|(name, value)| (name.as_slice(), value.as_slice()))
    }

    /// Reads a whole block.
    pub fn read(&mut self, block: &[u8]) -> Result<Fields, HpackError> {
        if let Some(texts) = &mut self.texts {
            texts.block.clear();
        }
        if let Some(cached) = self.cache.iter().find(|cached| cached.block == block) {
            return Ok(cached.fields);
        }
        let mut fields = Fields::default();
        let mut rest = block;
        let mut is_lasting = true;
        while let Some(first) = rest.first() {
            is_lasting &= !self.read_field(*first, &mut rest, &mut fields)?;
        }
        if is_lasting && self.texts.is_none() {
            self.learn(block, fields)
        } else {
            self.clear_cache()
        }
        Ok(fields)
    }

    /// Forgets which blocks it knows; the next is read as if it were the first of its kind.
    pub fn clear_cache(&mut self) {
        self.cache.clear();
    }

    /// Heap bytes in use.
    pub fn heap_bytes(&self) -> usize {
        let cached =
            self.cache.iter().map(|cached| cached.block.capacity() + size_of::<CachedBlock>());
        cached.sum::<usize>() + self.table.capacity() * size_of::<Field>()
    }

    fn learn(&mut self, block: &[u8], fields: Fields) {
        if block.len() > CACHED_BLOCK_BYTES_MAX {
            return;
        }
        if self.cache.len() < CACHED_BLOCKS_MAX {
            self.cache.push(CachedBlock { block: block.to_vec(), fields });
            return;
        }
        let cached = &mut self.cache[self.oldest];
        cached.block.clear();
        cached.block.extend_from_slice(block);
        cached.fields = fields;
        self.oldest = (self.oldest + 1) % CACHED_BLOCKS_MAX;
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
                if fields.is_within_limits()
                    && let Some(texts) = &mut self.texts
                {
                    texts.refer(index);
                }
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
        let mut text = FieldText::default();
        let keeps = self.texts.is_some() && fields.is_within_limits();
        let name = match read_number(rest, prefix_bits)? {
            0 => Field::named(&read_text(rest, keeps.then_some(&mut text.0))?),
            index => {
                let texts = self.texts.as_mut().filter(|_| keeps);
                if let Some(texts) = texts
                    && let Some((name, _)) = texts.refer(index)
                {
                    text.0.clone_from(name);
                    texts.block.pop();
                }
                self.field(index)?
            }
        };
        let field = name.with_value(&read_text(rest, keeps.then_some(&mut text.1))?);
        fields.add(field);
        if is_kept {
            self.insert(field, &text);
        }
        if let Some(texts) = self.texts.as_mut().filter(|_| keeps) {
            texts.block.push(text);
        }
        Ok(is_kept)
    }

    fn field(&self, index: u64) -> Result<Field, HpackError> {
        let missing = HpackError::Index(index);
        let at = usize::try_from(index).map_err(|_| missing)?;
        if let Some((name, value)) = static_field(at) {
            return Ok(Field::named(&Text::from_string(name)).with_value(&Text::from_string(value)));
        }
        let at = at.checked_sub(STATIC_COUNT + 1).ok_or(missing)?;
        self.table.get(at).copied().ok_or(missing)
    }

    fn resize(&mut self, bytes: u64) -> Result<(), HpackError> {
        let small = u32::try_from(bytes).ok().filter(|bytes| *bytes <= TABLE_BYTES);
        self.table_bytes_max = small.ok_or(HpackError::TableSize(bytes))?;
        self.evict(0);
        Ok(())
    }

    fn insert(&mut self, field: Field, text: &FieldText) {
        let bytes = field.bytes();
        self.evict(bytes);
        // RFC 7541 §4.4: a field that is larger than the table empties it.
        if bytes <= self.table_bytes_max {
            self.table.push_front(field);
            if let Some(texts) = &mut self.texts {
                texts.table.push_front(text.clone());
            }
            self.table_bytes += bytes;
        }
    }

    /// Makes room.
    fn evict(&mut self, needed_bytes: u32) {
        while self.table_bytes.saturating_add(needed_bytes) > self.table_bytes_max
            && let Some(field) = self.table.pop_back()
        {
            self.table_bytes -= field.bytes();
            if let Some(texts) = &mut self.texts {
                texts.table.pop_back();
            }
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
    for index in 0..MORE_BYTES_MAX {
        let (byte, after) = rest.split_first().ok_or(HpackError::Incomplete)?;
        *rest = after;
        number += u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(HpackError::Number)
}

/// RFC 7541 §5.2. `keep` gets the whole string.
fn read_text(rest: &mut &[u8], mut keep: Option<&mut Vec<u8>>) -> Result<Text, HpackError> {
    let is_coded = rest.first().is_some_and(|first| first & 0x80 != 0);
    let length = read_number(rest, 7)?;
    let length = usize::try_from(length).map_err(|_| HpackError::Number)?;
    let (string, after) = rest.split_at_checked(length).ok_or(HpackError::Incomplete)?;
    *rest = after;
    let mut text = Text::default();
    let mut push = |byte| {
        text.push(byte);
        if let Some(keep) = &mut keep {
            keep.push(byte);
        }
    };
    match is_coded {
        false => string.iter().for_each(|byte| push(*byte)),
        true if decode_huffman(string, push) => {}
        true => return Err(HpackError::Huffman),
    }
    Ok(text)
}

/// Symbol that no string may hold.
const END: u16 = 256;
const SYMBOLS: usize = 257;
/// Shortest code.
const BITS_MIN: usize = 5;
/// Longest code.
const BITS_MAX: usize = 30;

/// Bits of each symbol's code. RFC 7541 Appendix B
const BITS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// The table turned round: from bits to symbols.
struct HuffmanTable {
    /// Symbols by the value of their codes.
    symbols: [u16; SYMBOLS],
    /// By length: the first 32-bit word, filled up with zeros, above all codes of this length.
    limits: [u64; BITS_MAX + 1],
    /// By length: what makes a code an index into `symbols`.
    offsets: [i64; BITS_MAX + 1],
}

const HUFFMAN: HuffmanTable = HuffmanTable::new();

impl HuffmanTable {
    const fn new() -> Self {
        let mut table =
            Self { symbols: [0; SYMBOLS], limits: [0; BITS_MAX + 1], offsets: [0; BITS_MAX + 1] };
        let (mut code, mut index, mut bits) = (0u64, 0usize, BITS_MIN);
        while bits <= BITS_MAX {
            table.offsets[bits] = index as i64 - code as i64;
            let mut symbol = 0;
            while symbol < SYMBOLS {
                if BITS[symbol] as usize == bits {
                    table.symbols[index] = symbol as u16;
                    index += 1;
                    code += 1;
                }
                symbol += 1;
            }
            table.limits[bits] = code << (32 - bits);
            code <<= 1;
            bits += 1;
        }
        table
    }

    /// The symbol that a word begins with, and the bits of its code.
    fn read(&self, word: u64) -> (u16, usize) {
        let mut bits = BITS_MIN;
        while bits < BITS_MAX && word >= self.limits[bits] {
            bits += 1;
        }
        let index = (word >> (32 - bits)) as i64 + self.offsets[bits];
        // Bit patterns above all codes begin with the last one: the code is complete.
        (self.symbols[(index as usize).min(SYMBOLS - 1)], bits)
    }
}

/// Hands over the bytes of a string; false where it is none: its padding is wrong, or it holds the
/// symbol that ends strings.
fn decode_huffman(coded: &[u8], mut take: impl FnMut(u8)) -> bool {
    // Bits not read yet, at the lower end.
    let (mut waiting, mut count, mut at) = (0u64, 0usize, 0);
    loop {
        while count < 32 && at < coded.len() {
            waiting = waiting << 8 | u64::from(coded[at]);
            count += 8;
            at += 1;
        }
        if count == 0 {
            return true;
        }
        // Missing bits are filled with ones, like padding.
        let word = match count >= 32 {
            true => waiting >> (count - 32) & 0xffff_ffff,
            false => {
                let lacking = 32 - count;
                (waiting << lacking | ((1 << lacking) - 1)) & 0xffff_ffff
            }
        };
        let (symbol, bits) = HUFFMAN.read(word);
        if bits > count {
            // RFC 7541 §5.2: less than a byte, all ones.
            return count < 8 && word == 0xffff_ffff;
        }
        match symbol {
            END => return false,
            symbol => take(symbol as u8),
        }
        count -= bits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(coded: &[u8]) -> Option<String> {
        let mut bytes = Vec::new();
        decode_huffman(coded, |byte| bytes.push(byte)).then(|| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn the_examples_of_the_standard_are_read() {
        // RFC 7541 Appendix C.4.1, C.4.3, C.6.1.
        let authority = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(text(&authority).as_deref(), Some("www.example.com"));
        let value = [0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf];
        assert_eq!(text(&value).as_deref(), Some("custom-value"));
        let date = [
            0xd0, 0x7a, 0xbe, 0x94, 0x10, 0x54, 0xd4, 0x44, 0xa8, 0x20, 0x05, 0x95, 0x04, 0x0b,
            0x81, 0x66, 0xe0, 0x82, 0xa6, 0x2d, 0x1b, 0xff,
        ];
        assert_eq!(text(&date).as_deref(), Some("Mon, 21 Oct 2013 20:13:21 GMT"));
        assert_eq!(text(&[]).as_deref(), Some(""));
    }

    #[test]
    fn wrong_padding_and_the_end_symbol_are_refused() {
        assert_eq!(text(&[0x64, 0x02]).as_deref(), Some("302"), "0x02 is the end of 302 in C.6.1");
        for bad in [&[0xff][..], &[0xff, 0xff], &[0xff; 4], &[0x18]] {
            assert_eq!(text(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn every_byte_has_a_code_that_leads_back_to_it() {
        let mut codes = [(0u32, 0u8); 257];
        let mut order: Vec<usize> = (0..257).collect();
        order.sort_by_key(|symbol| (BITS[*symbol], *symbol));
        let (mut code, mut before) = (0u64, 5);
        for symbol in order {
            code <<= BITS[symbol] - before;
            before = BITS[symbol];
            codes[symbol] = (code as u32, before);
            code += 1;
        }
        assert_eq!(code, 1 << 30, "the code is complete");
        for byte in 0..=255u8 {
            let (code, bits) = codes[usize::from(byte)];
            let word = u64::from(code) << (40 - bits) | ((1 << (40 - bits)) - 1);
            let coded = &word.to_be_bytes()[3..3 + usize::from(bits).div_ceil(8)];
            let mut bytes = Vec::new();
            assert!(decode_huffman(coded, |b| bytes.push(b)), "{byte}");
            assert_eq!(bytes, [byte]);
        }
    }
}
