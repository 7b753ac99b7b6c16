// gzip by the system's zlib. Its deflateInit2 is a macro, which Swift cannot call.
#ifndef CZLIB_H
#define CZLIB_H

#include <stddef.h>
#include <stdint.h>

/// The most bytes that czlib_gzip makes of so many.
size_t czlib_bound(size_t length);

/// Packs `input` into `output` as gzip (RFC 1952), as small as zlib can make it, without a time or a name: the same
/// bytes for the same input. Returns how many bytes it wrote; 0 where `capacity` or memory did not suffice.
size_t czlib_gzip(const uint8_t *input, size_t length, uint8_t *output, size_t capacity);

#endif
