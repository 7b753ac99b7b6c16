// The system's libargon2, and the function of libcrypt that verifies imported hashes.
#ifndef CARGON2_H
#define CARGON2_H

#include <argon2.h>
#include <stddef.h>

/// The maximum size of a hash of libcrypt with its NUL: one of SHA-512 has 123 characters.
#define CARGON2_CRYPT_SIZE 128

/// Hashes a secret with the function, parameters and salt of `setting`: a hash of bcrypt (`$2a$`, `$2b$`, `$2y$`), of
/// SHA-crypt (`$5$`, `$6$`) or of MD5-crypt (`$1$`).
///
/// secret: without embedded NUL, at most 511 bytes; bcrypt reads 72.
/// output: the NUL-terminated hash.
/// Returns 0, or -1 if the setting is invalid, the secret is too long, or memory is exhausted.
int cargon2_crypt(const char *secret, const char *setting, char output[CARGON2_CRYPT_SIZE]);

#endif
