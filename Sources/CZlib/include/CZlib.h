// gzip compression by the system's zlib. Swift cannot call deflateInit2, which is a macro.
#ifndef CZLIB_H
#define CZLIB_H

#include <stddef.h>
#include <stdint.h>

/// The maximum number of bytes that czlib_gzip writes for an input of this length.
size_t czlib_bound(size_t length);

/// Compresses `input` to `output` as gzip (RFC 1952) with the best compression and without time and name, so that the
/// result is reproducible. Returns the number of written bytes; 0 if `capacity` or memory is insufficient.
size_t czlib_gzip(const uint8_t *input, size_t length, uint8_t *output, size_t capacity);

#endif
