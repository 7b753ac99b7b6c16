// Build information and the versions of the loaded system libraries, for `moongate --version`.
#pragma once
#include <stddef.h>

// Values from the environment of a packaging build (Package.swift); "" in other builds.
// The commit of the sources.
extern const char *const cversions_commit;
// The version of the Swift compiler.
extern const char *const cversions_swift;
// The version of swift-nio-ssl, which contains BoringSSL.
extern const char *const cversions_nio_ssl;

// A loaded system library by its index from 0, in a fixed order.
typedef struct {
  // NULL after the last library.
  const char *name;
  char version[48];
} cversions_library;

// Returns the version of a library. If the library has no function for it, the version is the number in its file name,
// for example 1 for libargon2.so.1.
cversions_library cversions_library_at(size_t index);
