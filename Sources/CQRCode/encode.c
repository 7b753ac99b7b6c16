#include "CQRCode.h"

#include <qrencode.h>

int32_t cqr_encode(const char *text, size_t length, uint8_t *modules) {
  if (length == 0 || length > CQR_MOST_BYTES) return 0;
  // Version 0 selects the smallest version that fits.
  QRcode *code = QRcode_encodeData((int)length, (const unsigned char *)text, 0, QR_ECLEVEL_M);
  if (!code) return 0;
  const int32_t width = code->width;
  const size_t count = (size_t)width * (size_t)width;
  if (count <= CQR_MOST_MODULES) {
    // The lowest bit is the color; the other bits describe the kind of module.
    for (size_t index = 0; index < count; index++) modules[index] = code->data[index] & 1;
  }
  QRcode_free(code);
  return count <= CQR_MOST_MODULES ? width : 0;
}
