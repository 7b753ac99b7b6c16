#ifndef MOONGATE_CQRCODE_H
#define MOONGATE_CQRCODE_H

#include <stddef.h>
#include <stdint.h>

// libqrencode behind one call. It owns what a QR code is (ISO/IEC 18004); how it is drawn is Swift's.

// The most modules that a symbol has: 177 on each side.
#define CQR_MOST_MODULES (177 * 177)
// The most bytes that are encoded: what a phone's camera still reads from a screen.
#define CQR_MOST_BYTES 1024

// Encodes bytes with error correction of level M (15 %).
// `modules`: gets a 1 for each dark module and a 0 for each light one, row by row; at least CQR_MOST_MODULES bytes.
// Returns the modules on each side, or 0 where the text is empty or too long, or there is no memory.
int32_t cqr_encode(const char *text, size_t length, uint8_t *modules);

#endif
