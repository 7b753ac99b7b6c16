#ifndef MOONGATE_CPHONENUMBER_H
#define MOONGATE_CPHONENUMBER_H

#include <stddef.h>
#include <stdint.h>

// A C interface of libphonenumber for numbering plans. Swift code defines the allowed input and the messages to users.
//
// No C++ exception leaves these functions (they return CPHONE_FAULT), and no memory is handed over (results are written
// to the caller's memory). All functions are thread-safe: libphonenumber's instance is created once, and its cache of
// regular expressions has a lock.

#ifdef __cplusplus
extern "C" {
#endif

// The maximum length of `digits`; longer ones are CPHONE_TOO_LONG.
#define CPHONE_MOST_DIGITS 40

typedef enum {
  CPHONE_POSSIBLE = 0,
  CPHONE_TOO_SHORT = 1,
  CPHONE_TOO_LONG = 2,
  // Not a number of that country, or of any country.
  CPHONE_NO_NUMBER = 3,
  // An internal failure, for example exhausted memory.
  CPHONE_FAULT = 4,
} cphone_status;

typedef enum {
  CPHONE_UNKNOWN = 0,
  CPHONE_MOBILE = 1,
  CPHONE_FIXED = 2,
  CPHONE_VOIP = 3,
} cphone_kind;

// A parsed number. Texts are NUL-terminated ASCII.
typedef struct {
  // "+919999999999".
  char e164[32];
  // "+91 99999 99999".
  char international[64];
  // ISO 3166-1 alpha-2; "001" for a number of no country.
  char country[4];
  cphone_kind kind;
  // Whether it is in an assigned range. The known ranges become outdated, so nothing is refused because of this.
  int32_t is_valid;
} cphone_number;

// Parses a number.
// `digits`: ASCII digits with an optional leading `+`, `length` bytes; `region`: two upper-case letters and NUL.
// `out` is written only with CPHONE_POSSIBLE.
cphone_status cphone_read(const char *digits, size_t length, const char *region, cphone_number *out);

// Formats an incomplete number for the region. Writes at most `capacity` bytes including the NUL.
// Returns the length of the text, or 0 on failure.
size_t cphone_format_typed(const char *digits, size_t length, const char *region, char *out, size_t capacity);

// The calling code of the region (two upper-case letters and NUL), or 0 if the region is unknown.
int32_t cphone_calling_code(const char *region);

#ifdef __cplusplus
}
#endif

#endif
