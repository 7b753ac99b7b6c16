#ifndef MOONGATE_CQRCODE_H
#define MOONGATE_CQRCODE_H

#include <stddef.h>
#include <stdint.h>

// QR code encoding (ISO/IEC 18004) by libqrencode. Swift draws the result.

// The maximum number of modules: 177 on each side.
#define CQR_MOST_MODULES (177 * 177)
// The maximum number of encoded bytes that a phone camera can still read from a screen.
#define CQR_MOST_BYTES 1024

// Encodes bytes with error correction level M (15 %).
// `modules`: receives 1 for each dark and 0 for each light module, row by row; at least CQR_MOST_MODULES bytes.
// Returns the number of modules on each side, or 0 if the text is empty or too long or memory is exhausted.
int32_t cqr_encode(const char *text, size_t length, uint8_t *modules);

#endif
