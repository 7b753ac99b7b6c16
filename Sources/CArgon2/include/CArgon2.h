// libargon2 as the system has it, and of libcrypt what judges a bcrypt hash that came from elsewhere.
#ifndef CARGON2_H
#define CARGON2_H

#include <argon2.h>
#include <stddef.h>

/// The longest text of a bcrypt hash, with its NUL.
#define CARGON2_BCRYPT_SIZE 64

/// Hashes as `setting` (a bcrypt hash, `$2a$`, `$2b$` or `$2y$`) says.
///
/// secret: without NUL inside, 72 bytes at most: bcrypt itself reads no further.
/// output: the hash, NUL-terminated.
/// Returns 0, or -1 where the setting cannot be read or there is no memory.
int cargon2_bcrypt(const char *secret, const char *setting, char output[CARGON2_BCRYPT_SIZE]);

#endif
