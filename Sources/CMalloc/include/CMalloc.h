#ifndef CMALLOC_H
#define CMALLOC_H

#include <stddef.h>

/// Bytes that the allocator has handed out and that were not freed; 0 where it does not tell.
size_t cmalloc_in_use(void);

/// Gives every whole page that was freed back to the system.
void cmalloc_trim(void);

#endif
