#include "CArgon2.h"

#include <crypt.h>
#include <stdlib.h>
#include <string.h>

int cargon2_crypt(const char *secret, const char *setting, char output[CARGON2_CRYPT_SIZE]) {
  // 32 KiB is too large for the stack of a thread.
  struct crypt_data *scratch = calloc(1, sizeof *scratch);
  if (!scratch) return -1;
  const char *hash = crypt_rn(secret, setting, scratch, sizeof *scratch);
  int result = -1;
  if (hash && hash[0] == '$' && strlen(hash) < CARGON2_CRYPT_SIZE) {
    strcpy(output, hash);
    result = 0;
  }
  explicit_bzero(scratch, sizeof *scratch);
  free(scratch);
  return result;
}
