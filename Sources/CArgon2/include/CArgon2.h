// The system's libargon2, and the function of libcrypt that verifies imported bcrypt hashes.
#ifndef CARGON2_H
#define CARGON2_H

#include <argon2.h>
#include <stddef.h>

/// The maximum size of a bcrypt hash with its NUL.
#define CARGON2_BCRYPT_SIZE 64

/// Hashes a secret with the parameters and salt of `setting` (a bcrypt hash with `$2a$`, `$2b$` or `$2y$`).
///
/// secret: without embedded NUL, at most 72 bytes, because bcrypt ignores the rest.
/// output: the NUL-terminated hash.
/// Returns 0, or -1 if the setting is invalid or memory is exhausted.
int cargon2_bcrypt(const char *secret, const char *setting, char output[CARGON2_BCRYPT_SIZE]);

#endif
