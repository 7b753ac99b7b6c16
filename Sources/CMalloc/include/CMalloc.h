#ifndef CMALLOC_H
#define CMALLOC_H

#include <stddef.h>

/// The number of allocated bytes; 0 if the allocator does not report it.
size_t cmalloc_in_use(void);

/// Returns all free pages to the system.
void cmalloc_trim(void);

#endif
