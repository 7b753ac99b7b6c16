#ifndef MOONGATE_CPHONENUMBER_H
#define MOONGATE_CPHONENUMBER_H

#include <stddef.h>
#include <stdint.h>

// libphonenumber behind a C face. It owns the rules of the world's numbers and nothing else: what may be typed, and
// what a person is told, is Swift's.
//
// No C++ exception crosses (each call catches all and answers CPHONE_FAULT), nothing allocated here is handed out
// (every answer is written into the caller's own memory), and every call may be made on any thread at any time:
// libphonenumber's instance is made once and its cache of expressions has a lock.

#ifdef __cplusplus
extern "C" {
#endif

// The most bytes of `digits` that are looked at; longer ones are CPHONE_TOO_LONG.
#define CPHONE_MOST_DIGITS 40

typedef enum {
  CPHONE_POSSIBLE = 0,
  CPHONE_TOO_SHORT = 1,
  CPHONE_TOO_LONG = 2,
  // No number of that country, or of any.
  CPHONE_NO_NUMBER = 3,
  // An exception was caught: the machine's fault, not the number's.
  CPHONE_FAULT = 4,
} cphone_status;

typedef enum {
  CPHONE_UNKNOWN = 0,
  CPHONE_MOBILE = 1,
  CPHONE_FIXED = 2,
  CPHONE_VOIP = 3,
} cphone_kind;

// A number that was read. Texts are ASCII and end in NUL.
typedef struct {
  // "+919999999999".
  char e164[32];
  // "+91 99999 99999".
  char international[64];
  // ISO 3166-1 alpha-2; "001" for a number that belongs to no country.
  char country[4];
  cphone_kind kind;
  // Whether it lies in a range that is in use. Ranges age: this refuses nothing.
  int32_t is_valid;
} cphone_number;

// Reads a number.
// `digits`: ASCII digits with or without one `+` before them, `length` bytes; `region`: two upper-case letters and NUL.
// `out` is written only with CPHONE_POSSIBLE.
cphone_status cphone_read(const char *digits, size_t length, const char *region, cphone_number *out);

// Spaces what was typed so far as the region writes it. Writes at most `capacity` bytes with the NUL.
// Returns the length of the text, 0 where it cannot be had.
size_t cphone_format_typed(const char *digits, size_t length, const char *region, char *out, size_t capacity);

// The calling code of the region: two upper-case letters and NUL. 0 where its numbers are not known.
int32_t cphone_calling_code(const char *region);

#ifdef __cplusplus
}
#endif

#endif
