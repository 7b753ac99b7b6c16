"""Makes common.bloom: python3 make-common.py LIST... > common.bloom

Each LIST is a text file of leaked passwords, one a line, the most common first. What is shorter than 8 characters is left out: it is
refused by its length. A Bloom filter of 2^19 bits with 22 hash functions; CommonPasswords.swift reads it.
"""

import sys
import unicodedata

BITS = 1 << 19
HASHES = 22
MASK = (1 << 64) - 1


def mixed(data: bytes, seed: int) -> int:
    value = 0xCBF29CE484222325 ^ seed
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & MASK
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & MASK
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & MASK
    return value ^ value >> 33


words = set()
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as lines:
        words |= {unicodedata.normalize("NFC", line.rstrip("\n")).lower() for line in lines}
words = {word for word in words if len(word) >= 8}
bits = bytearray(BITS // 8)
for word in words:
    first, second = mixed(word.encode(), 0), mixed(word.encode(), 1) | 1
    for index in range(HASHES):
        place = (first + index * second & MASK) % BITS
        bits[place >> 3] |= 1 << (place & 7)
sys.stdout.buffer.write(bits)
print(f"{len(words)} passwords, {sum(byte.bit_count() for byte in bits) / BITS:.4f} of the bits", file=sys.stderr)
