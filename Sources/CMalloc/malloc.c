#include "CMalloc.h"

#include <malloc.h>

#ifdef __GLIBC__
size_t cmalloc_in_use(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

void cmalloc_trim(void) { malloc_trim(0); }
#else
// Other allocators return memory to the system automatically.
size_t cmalloc_in_use(void) { return 0; }

void cmalloc_trim(void) {}
#endif
