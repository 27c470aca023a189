// What the tests of malloc share: values that the compiler cannot see through, so that it neither warns of a bad size
// nor leaves a pair of calls out; and looks at a block.
#pragma once

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <malloc.h>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace loam::tests {

template <class Value>
Value opaque(Value value) {
  volatile Value kept = value;
  return kept;
}

inline constexpr std::size_t kBytesMax = PTRDIFF_MAX;

// Sizes on both sides of what an allocator may treat differently.
inline constexpr std::size_t kSizes[] = {
    0,       1,    7,    8,    15,   16,    17,    63,    64,    100,    128,    129,     1000,          1024,
    1025,    4000, 4096, 4097, 8192, 16384, 32768, 32769, 65536, 100000, 262144, 1 << 20, (1 << 20) + 1, (4 << 20) + 1,
    10 << 20};

inline bool is_aligned(const void* block, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(block) % alignment == 0;
}

// Writes each byte of a block so that no other of its size is the same everywhere.
inline void fill(void* block, std::size_t bytes, unsigned seed) {
  auto* const at = static_cast<unsigned char*>(block);
  for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<unsigned char>(seed + i * 7 + (i >> 8));
}

inline bool is_filled(const void* block, std::size_t bytes, unsigned seed) {
  const auto* const at = static_cast<const unsigned char*>(block);
  for (std::size_t i = 0; i < bytes; ++i)
    if (at[i] != static_cast<unsigned char>(seed + i * 7 + (i >> 8))) return false;
  return true;
}

// Makes and ends blocks of `bytes`, 32 MiB in all. returns by how many bytes the memory in use has grown: few if
// end(block, bytes) frees the blocks
template <class Make, class End>
std::size_t kept_of_32_mib(std::size_t bytes, Make make, End end) {
  const auto in_use = [] {
    const auto now = ::mallinfo2();
    return now.uordblks + now.hblkhd;
  };
  const std::size_t before = in_use();
  for (std::size_t made = 0; made < (std::size_t{32} << 20); made += bytes) end(make(opaque(bytes)), bytes);
  const std::size_t after = in_use();
  return after > before ? after - before : 0;
}
inline constexpr std::size_t kKeptMax = std::size_t{4} << 20;

// The file name of the object in which a function lies.
inline std::string object_of(const void* function) {
  Dl_info found{};
  if (dladdr(function, &found) == 0 || found.dli_fname == nullptr) return "";
  const std::string_view path = found.dli_fname;
  return std::string(path.substr(path.rfind('/') + 1));
}

inline constexpr const char* kLibrary = "libloam-malloc.so";

}  // namespace loam::tests
