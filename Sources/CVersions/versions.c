#define _GNU_SOURCE
#include "CVersions.h"

#include <curl/curl.h>
#include <link.h>
#include <lua5.4/lua.h>
#include <maxminddb.h>
#include <openssl/crypto.h>
#include <postgresql/libpq-fe.h>
#include <qrencode.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#ifndef MOONGATE_COMMIT
#define MOONGATE_COMMIT ""
#endif
#ifndef MOONGATE_SWIFT
#define MOONGATE_SWIFT ""
#endif
#ifndef MOONGATE_NIO_SSL
#define MOONGATE_NIO_SSL ""
#endif

const char *const cversions_commit = MOONGATE_COMMIT;
const char *const cversions_swift = MOONGATE_SWIFT;
const char *const cversions_nio_ssl = MOONGATE_NIO_SSL;

// liblua exports its full version only in its banner; its functions return 504.
extern const char lua_ident[];

static void copy_version(char *to, const char *text) { snprintf(to, sizeof((cversions_library *)0)->version, "%s",
  text); }

static void lua_release(char *to) {
  const char *begin = strstr(lua_ident, "Lua 5");
  if (begin == NULL) return copy_version(to, LUA_VERSION_MAJOR "." LUA_VERSION_MINOR);
  begin += strlen("Lua ");
  snprintf(to, sizeof((cversions_library *)0)->version, "%.*s", (int)strcspn(begin, " "), begin);
}

static void libpq_version(char *to) {
  int number = PQlibVersion();
  char text[32];
  snprintf(text, sizeof text, "%d.%d", number / 10000, number % 10000);
  copy_version(to, text);
}

struct wanted {
  const char *prefix;
  char *version;
};

// Finds a loaded library by its file name and reads the number after ".so." of the resolved file.
static int find_object(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  struct wanted *wanted = data;
  const char *name = strrchr(info->dlpi_name, '/');
  if (name == NULL || strncmp(name + 1, wanted->prefix, strlen(wanted->prefix)) != 0) return 0;
  char *real = realpath(info->dlpi_name, NULL);
  const char *number = real == NULL ? NULL : strstr(real, ".so.");
  if (number != NULL) copy_version(wanted->version, number + strlen(".so."));
  free(real);
  return 1;
}

static void version_of_file(const char *prefix, char *to) {
  copy_version(to, "unknown");
  struct wanted wanted = {prefix, to};
  dl_iterate_phdr(find_object, &wanted);
}

cversions_library cversions_library_at(size_t index) {
  cversions_library found = {NULL, ""};
  switch (index) {
    case 0: found.name = "Lua"; lua_release(found.version); break;
    case 1: found.name = "SQLite"; copy_version(found.version, sqlite3_libversion()); break;
    case 2: found.name = "OpenSSL"; copy_version(found.version, OpenSSL_version(OPENSSL_VERSION_STRING)); break;
    case 3: found.name = "libpq"; libpq_version(found.version); break;
    case 4: found.name = "libcurl"; copy_version(found.version, curl_version_info(CURLVERSION_NOW)->version); break;
    case 5: found.name = "zlib"; copy_version(found.version, zlibVersion()); break;
    case 6: found.name = "libqrencode"; copy_version(found.version, QRcode_APIVersionString()); break;
    case 7: found.name = "libphonenumber"; version_of_file("libphonenumber.so", found.version); break;
    case 8: found.name = "libargon2"; version_of_file("libargon2.so", found.version); break;
    case 9: found.name = "libcrypt"; version_of_file("libcrypt.so", found.version); break;
    case 10: found.name = "libldap"; version_of_file("libldap", found.version); break;
    case 11: found.name = "libmaxminddb"; copy_version(found.version, MMDB_lib_version()); break;
    default: break;
  }
  return found;
}
