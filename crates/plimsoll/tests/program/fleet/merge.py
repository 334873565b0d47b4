"""Merges HdrHistogram interval logs and compares the sum with another log, bit for bit.

Usage: merge.py SUM PART...

Reads the format by its specification (V2, compressed) with the standard library alone.
"""

import base64
import struct
import sys
import zlib

HEADER = struct.Struct(">iiiiqqd")
COOKIE, PACKED_COOKIE = 0x1C849303, 0x1C849304


def varint(data, at):
    """A ZigZag LEB128-64b9B number and where the next one begins."""
    value = 0
    for place in range(9):
        byte = data[at]
        at += 1
        if place == 8:
            value |= byte << 56
            break
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    return (value >> 1) ^ -(value & 1), at


def zigzag(number):
    value = ((number << 1) ^ (number >> 63)) & 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    for _ in range(8):
        if value < 0x80:
            return out + bytes([value])
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return out + bytes([value])


def unpack(text):
    """Header fields that say what the counters mean, the counters, and the bytes of both."""
    data = base64.b64decode(text)
    cookie, length = struct.unpack_from(">ii", data)
    assert cookie & ~0xF0 == PACKED_COOKIE & ~0xF0, hex(cookie)
    plain = zlib.decompress(data[8 : 8 + length])
    cookie, length, *meaning = HEADER.unpack_from(plain)
    assert cookie & ~0xF0 == COOKIE & ~0xF0, hex(cookie)
    counts, at = [], HEADER.size
    while at < HEADER.size + length:
        number, at = varint(plain, at)
        counts.extend([number] if number >= 0 else [0] * -number)
    return tuple(meaning), counts, plain


def pack(counts):
    out, zeros = bytearray(), 0
    while counts and counts[-1] == 0:
        counts = counts[:-1]
    for count in counts:
        if count == 0:
            zeros += 1
            continue
        if zeros:
            out += zigzag(-zeros if zeros > 1 else 0)
            zeros = 0
        out += zigzag(count)
    return bytes(out)


def read(path):
    """Histograms by tag and start."""
    found = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("Tag="):
                tag, start, _, _, text = line.strip().split(",")
                assert (tag, start) not in found, (path, tag, start)
                found[tag, start] = unpack(text)
    return found


def main(whole, *parts):
    wanted, merged = read(whole), {}
    for part in parts:
        for key, (meaning, counts, _) in read(part).items():
            known, total = merged.setdefault(key, (meaning, []))
            assert known == meaning, key
            total.extend([0] * (len(counts) - len(total)))
            for index, count in enumerate(counts):
                total[index] += count
    assert merged.keys() == wanted.keys(), merged.keys() ^ wanted.keys()
    recorded = 0
    for key, (meaning, counts, plain) in wanted.items():
        known, total = merged[key]
        assert known == meaning, key
        assert pack(total) == plain[HEADER.size :], key
        recorded += sum(counts)
    print(len(wanted), "histograms of", recorded, "values are equal")


main(*sys.argv[1:])
