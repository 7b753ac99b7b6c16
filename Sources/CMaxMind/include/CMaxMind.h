// Databases of client addresses in MaxMind's format (.mmdb) by the system's libmaxminddb.
#ifndef CMAXMIND_H
#define CMAXMIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// An open database. Any number of threads can use it at a time.
typedef struct cmaxmind_database cmaxmind_database;

/// The maximum size of a file in bytes.
extern const size_t cmaxmind_most_bytes;

/// Opens a copy of the file in memory, so that the file can change or become shorter meanwhile.
/// Returns NULL if it cannot be read or is not a database; `problem` is then the reason, with NUL at its end.
cmaxmind_database *cmaxmind_open(const char *path, char *problem, size_t capacity);

void cmaxmind_close(cmaxmind_database *database);

/// When the database was made, in Unix time.
uint64_t cmaxmind_built(const cmaxmind_database *database);

/// The type as the database states it, such as `GeoLite2-Country`. Valid until the database is closed.
const char *cmaxmind_type(const cmaxmind_database *database);

/// Whether any of the first thousand networks has a country, and whether any has the number of an autonomous system.
void cmaxmind_contents(const cmaxmind_database *database, bool *has_countries, bool *has_numbers);

/// Finds the country of an address of 4 or 16 bytes: two capital letters (ISO 3166-1 alpha-2).
/// Returns false if the database does not know it.
bool cmaxmind_country(const cmaxmind_database *database, const uint8_t *address, size_t length, char country[2]);

/// Finds the number of the autonomous system of an address of 4 or 16 bytes.
/// Returns false if the database does not know it.
bool cmaxmind_number(const cmaxmind_database *database, const uint8_t *address, size_t length, uint32_t *number);

#endif
