// Pages under an emulator of user programs, which may tell a program of larger ones than the kernel below it has.
#pragma once

#include "runtime/platform/pages.hpp"

#include <cstring>

#include <sys/mman.h>

namespace loam::tests {

// How many bytes the kernel puts memory behind where one is touched.
inline std::size_t backed_by_a_touch() noexcept {
  const std::size_t page = platform::page_bytes();
  auto* const start =
      static_cast<volatile unsigned char*>(platform::map_lazy(page, {.huge_pages = false, .core_dump = false}));
  start[0] = 1;
  const std::size_t backed = platform::resident_bytes(const_cast<unsigned char*>(start), page);
  platform::unmap(const_cast<unsigned char*>(start), page);
  return backed;
}

// Whether mincore() answers for smaller pages than page_bytes().
inline bool answers_are_of_host_pages() noexcept {
  constexpr unsigned char kNoAnswer = 0x55;
  const std::size_t page = platform::page_bytes();
  void* const start = platform::map_lazy(page);
  unsigned char answers[platform::kPageBytesMax / platform::kPageBytes + 1];
  std::memset(answers, kNoAnswer, sizeof answers);
  mincore(start, page, answers);
  platform::unmap(start, page);
  return answers[1] != kNoAnswer;
}

}  // namespace loam::tests
