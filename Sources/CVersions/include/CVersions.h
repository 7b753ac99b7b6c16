// What this program was built from, and the versions of the system libraries that it runs with: for
// `moongate --version`.
#pragma once
#include <stddef.h>

// What a packaging build says about itself through its environment (Package.swift). Each is "" in any other build.
// The commit of the sources.
extern const char *const cversions_commit;
// The version of the Swift compiler.
extern const char *const cversions_swift;
// The version of swift-nio-ssl, whose BoringSSL speaks TLS.
extern const char *const cversions_nio_ssl;

// The libraries of the system that this process has loaded, by their index from 0 on; the order is fixed.
typedef struct {
  // NULL behind the last one.
  const char *name;
  char version[48];
} cversions_library;

// Returns the version of a library. If the library has no function for it, the version is the number in its file name,
// for example 1 for libargon2.so.1.
cversions_library cversions_library_at(size_t index);
