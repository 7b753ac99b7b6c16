#define _GNU_SOURCE
#include "CMaxMind.h"

#include <errno.h>
#include <fcntl.h>
#include <maxminddb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct cmaxmind_database {
  MMDB_s base;
};

const size_t cmaxmind_most_bytes = (size_t)1 << 30;

enum { most_networks = 1000, most_depth = 130 };

// Writes the whole file to the other one. Returns false with errno.
static bool copy(int from, int to) {
  char buffer[1 << 16];
  size_t total = 0;
  for (;;) {
    ssize_t count = read(from, buffer, sizeof buffer);
    if (count == 0) return true;
    if (count < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    total += (size_t)count;
    if (total > cmaxmind_most_bytes) {
      errno = EFBIG;
      return false;
    }
    for (ssize_t done = 0; done < count;) {
      ssize_t written = write(to, buffer + done, (size_t)(count - done));
      if (written < 0 && errno != EINTR) return false;
      if (written > 0) done += written;
    }
  }
}

// A file in memory with the contents of the file. Returns -1 with the reason.
//
// Attack, or accident: the file is overwritten or cut in place while it is mapped. Reading beyond its new end would
// end the process (SIGBUS), and a half written database would be read.
static int copy_in_memory(const char *path, char *problem, size_t capacity) {
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    snprintf(problem, capacity, "%s", strerror(errno));
    return -1;
  }
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    snprintf(problem, capacity, "it is not a file");
    close(file);
    return -1;
  }
  int memory = memfd_create("mmdb", MFD_CLOEXEC);
  if (memory < 0 || !copy(file, memory)) {
    snprintf(problem, capacity, "%s", errno == EFBIG ? "it is larger than 1 GiB" : strerror(errno));
    if (memory >= 0) close(memory);
    memory = -1;
  }
  close(file);
  return memory;
}

cmaxmind_database *cmaxmind_open(const char *path, char *problem, size_t capacity) {
  int memory = copy_in_memory(path, problem, capacity);
  if (memory < 0) return NULL;
  cmaxmind_database *database = calloc(1, sizeof *database);
  char name[64];
  snprintf(name, sizeof name, "/proc/self/fd/%d", memory);
  int status = database == NULL ? MMDB_OUT_OF_MEMORY_ERROR : MMDB_open(name, MMDB_MODE_MMAP, &database->base);
  close(memory);
  if (status == MMDB_SUCCESS) return database;
  snprintf(problem, capacity, "%s", status == MMDB_OUT_OF_MEMORY_ERROR
    ? "the memory is not enough" : "it is not a database in MaxMind's format (.mmdb)");
  free(database);
  return NULL;
}

void cmaxmind_close(cmaxmind_database *database) {
  MMDB_close(&database->base);
  free(database);
}

uint64_t cmaxmind_built(const cmaxmind_database *database) { return database->base.metadata.build_epoch; }

const char *cmaxmind_type(const cmaxmind_database *database) { return database->base.metadata.database_type; }

static bool read_country_text(MMDB_entry_s *entry, const char *const *path, char country[2]) {
  MMDB_entry_data_s data;
  if (MMDB_aget_value(entry, &data, path) != MMDB_SUCCESS || !data.has_data || data.type != MMDB_DATA_TYPE_UTF8_STRING
    || data.data_size != 2) return false;
  for (int index = 0; index < 2; index++) {
    if (data.utf8_string[index] < 'A' || data.utf8_string[index] > 'Z') return false;
    country[index] = data.utf8_string[index];
  }
  return true;
}

// MaxMind and DB-IP have a map `country`, others a text.
static bool read_country(MMDB_entry_s *entry, char country[2]) {
  const char *const map[] = {"country", "iso_code", NULL};
  const char *const code[] = {"country_code", NULL};
  const char *const text[] = {"country", NULL};
  return read_country_text(entry, map, country) || read_country_text(entry, code, country)
    || read_country_text(entry, text, country);
}

// MaxMind and DB-IP have a number, others a text such as `AS64500`.
static bool read_number(MMDB_entry_s *entry, uint32_t *number) {
  const char *const named[] = {"autonomous_system_number", NULL};
  MMDB_entry_data_s data;
  if (MMDB_aget_value(entry, &data, named) == MMDB_SUCCESS && data.has_data && data.type == MMDB_DATA_TYPE_UINT32) {
    *number = data.uint32;
    return true;
  }
  const char *const text[] = {"asn", NULL};
  if (MMDB_aget_value(entry, &data, text) != MMDB_SUCCESS || !data.has_data
    || data.type != MMDB_DATA_TYPE_UTF8_STRING || data.data_size < 3 || data.data_size > 12
    || data.utf8_string[0] != 'A' || data.utf8_string[1] != 'S') return false;
  uint64_t value = 0;
  for (uint32_t index = 2; index < data.data_size; index++) {
    char digit = data.utf8_string[index];
    if (digit < '0' || digit > '9') return false;
    value = value * 10 + (uint64_t)(digit - '0');
  }
  if (value > UINT32_MAX) return false;
  *number = (uint32_t)value;
  return true;
}

void cmaxmind_contents(const cmaxmind_database *database, bool *has_countries, bool *has_numbers) {
  *has_countries = *has_numbers = false;
  uint32_t stack[2 * most_depth];
  size_t depth = 0;
  int left = most_networks;
  // Each network is reached through at most 128 nodes. A damaged tree may have loops.
  int steps = most_networks * most_depth;
  stack[depth++] = 0;
  while (depth > 0 && left > 0 && steps-- > 0 && !(*has_countries && *has_numbers)) {
    MMDB_search_node_s node;
    if (MMDB_read_node(&database->base, stack[--depth], &node) != MMDB_SUCCESS) continue;
    const uint64_t records[] = {node.left_record, node.right_record};
    const uint8_t types[] = {node.left_record_type, node.right_record_type};
    MMDB_entry_s entries[] = {node.left_record_entry, node.right_record_entry};
    for (int side = 1; side >= 0; side--) {
      if (types[side] == MMDB_RECORD_TYPE_SEARCH_NODE && depth < 2 * most_depth) {
        stack[depth++] = (uint32_t)records[side];
      }
      if (types[side] != MMDB_RECORD_TYPE_DATA) continue;
      char country[2];
      uint32_t number;
      left--;
      *has_countries = *has_countries || read_country(&entries[side], country);
      *has_numbers = *has_numbers || read_number(&entries[side], &number);
    }
  }
}

// Finds the entry of an address.
static bool find(const cmaxmind_database *database, const uint8_t *address, size_t length, MMDB_entry_s *entry) {
  struct sockaddr_storage storage;
  memset(&storage, 0, sizeof storage);
  if (length == 4) {
    struct sockaddr_in *v4 = (struct sockaddr_in *)&storage;
    v4->sin_family = AF_INET;
    memcpy(&v4->sin_addr, address, length);
  } else if (length == 16) {
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&storage;
    v6->sin6_family = AF_INET6;
    memcpy(&v6->sin6_addr, address, length);
  } else {
    return false;
  }
  int status = MMDB_SUCCESS;
  MMDB_lookup_result_s found = MMDB_lookup_sockaddr(&database->base, (const struct sockaddr *)&storage, &status);
  if (status != MMDB_SUCCESS || !found.found_entry) return false;
  *entry = found.entry;
  return true;
}

bool cmaxmind_country(const cmaxmind_database *database, const uint8_t *address, size_t length, char country[2]) {
  MMDB_entry_s entry;
  return find(database, address, length, &entry) && read_country(&entry, country);
}

bool cmaxmind_number(const cmaxmind_database *database, const uint8_t *address, size_t length, uint32_t *number) {
  MMDB_entry_s entry;
  return find(database, address, length, &entry) && read_number(&entry, number);
}
