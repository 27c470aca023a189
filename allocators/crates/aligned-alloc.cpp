// C11's aligned_alloc for allocators that are older than it; they have memalign.
#include <malloc.h>
#include <stdlib.h>

extern "C" void* aligned_alloc(size_t alignment, size_t size) __THROW { return memalign(alignment, size); }
