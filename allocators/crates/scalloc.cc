// scalloc with the malloc_usable_size that it lacks: what is behind a pointer in its block, which may begin before it (memalign).
// Its headers define variables, so that only one file may include them.
#include <malloc.h>

#include "glue.cc"

extern "C" size_t malloc_usable_size(void* p) __THROW {
  if (p == nullptr) return 0;
  if (!scalloc::object_space.Contains(p)) return scalloc::LargeObject::PayloadSize(p);
  scalloc::Span* const span = scalloc::Span::FromObject(p);
  char* const begin = static_cast<char*>(span->AlignToBlockStart(p));
  return scalloc::ClassToSize[span->size_class()] - (static_cast<char*>(p) - begin);
}
