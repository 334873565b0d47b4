//! The Huffman code of HPACK, read. RFC 7541 §5.2, Appendix B.
//!
//! The code is canonical: codes of one length follow each other in the order of their symbols. The
//! lengths are therefore the whole table.

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
struct Table {
    /// Symbols by the value of their codes.
    symbols: [u16; SYMBOLS],
    /// By length: the first 32-bit word, filled up with zeros, above all codes of this length.
    limits: [u64; BITS_MAX + 1],
    /// By length: what makes a code an index into `symbols`.
    offsets: [i64; BITS_MAX + 1],
}

const TABLE: Table = Table::new();

impl Table {
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
        // Words above all codes begin with the last one: the code is complete.
        (self.symbols[(index as usize).min(SYMBOLS - 1)], bits)
    }
}

/// Hands over the bytes of a string; false where it is none: its padding is wrong, or it holds the
/// symbol that ends strings.
pub(super) fn decode(coded: &[u8], mut take: impl FnMut(u8)) -> bool {
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
        // What lacks is filled up with ones, which is how the padding looks.
        let word = match count >= 32 {
            true => waiting >> (count - 32) & 0xffff_ffff,
            false => {
                let lacking = 32 - count;
                (waiting << lacking | ((1 << lacking) - 1)) & 0xffff_ffff
            }
        };
        let (symbol, bits) = TABLE.read(word);
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
        decode(coded, |byte| bytes.push(byte)).then(|| String::from_utf8(bytes).unwrap())
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
            assert!(decode(coded, |b| bytes.push(b)), "{byte}");
            assert_eq!(bytes, [byte]);
        }
    }
}
