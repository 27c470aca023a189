// c_api: the functions of include/loam/malloc.h.
#include "include/loam/malloc.h"

#include "runtime/malloc/entry.hpp"
#include "runtime/malloc/report.hpp"

#include <algorithm>
#include <cstring>

#pragma GCC visibility push(default)
extern "C" {

size_t loam_malloc_json(char* buffer, size_t bytes) {
  char whole[loam::malloc::kReportBytes];
  const auto text = loam::malloc::json(whole);
  if (bytes > 0) {
    const std::size_t taken = std::min(text.size(), bytes - 1);
    std::memcpy(buffer, text.data(), taken);
    buffer[taken] = '\0';
  }
  return text.size();
}

void loam_malloc_summary(int descriptor) { loam::malloc::write_summary(descriptor); }

const char* loam_malloc_verify(void) { return loam::malloc::Heap::verify(); }

}  // extern "C"
#pragma GCC visibility pop
