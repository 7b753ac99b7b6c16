#include "CZlib.h"

#include <limits.h>
#include <zlib.h>

// Adding 16 to windowBits of deflateInit2 selects the gzip format.
enum { gzip_window = MAX_WBITS + 16, most_memory = MAX_MEM_LEVEL, header_and_trailer = 18 };

size_t czlib_bound(size_t length) { return compressBound(length) + header_and_trailer; }

size_t czlib_gzip(const uint8_t *input, size_t length, uint8_t *output, size_t capacity) {
  if (length > UINT_MAX || capacity > UINT_MAX) return 0;
  z_stream stream = {0};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, gzip_window, most_memory,
    Z_DEFAULT_STRATEGY) != Z_OK) return 0;
  stream.next_in = (Bytef *)input;
  stream.avail_in = (uInt)length;
  stream.next_out = output;
  stream.avail_out = (uInt)capacity;
  int end = deflate(&stream, Z_FINISH);
  size_t written = stream.total_out;
  deflateEnd(&stream);
  return end == Z_STREAM_END ? written : 0;
}
