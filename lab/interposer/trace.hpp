// The form of a trace: what each thread of a program asked of its allocator, in its order.
//   A file is a Header and then chunks of kChunkBytes, each of one thread.  Events are numbers of seven bits a byte, least
//   first; the two lowest bits of the first number say what it is:
//     alloc     bytes            the thread's next block; its blocks are numbered from 0
//     free      distance         of an own block: how many the thread has allocated since, from 1
//     foreign   thread, number   of another thread's block, by that thread's number from 1 and the block's number
//     resize    bytes            the block that was freed just before lives on as the thread's next one
//   T1 `used` grows only after its bytes are there, so a file whose program was killed is good up to `used`.
//   T2 a chunk that is full, or whose program ended well, has the sum of its bytes; of others `sum` is 0.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace loam::interposer::trace {

inline constexpr std::uint64_t kMagic = 0x313043'454D414F4CULL;  // "LOAM", then a version
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kChunkBytes = 64 * 1024;
inline constexpr std::size_t kEventBytesMax = 24;

enum class Kind : std::uint8_t { alloc = 0, free = 1, foreign = 2, resize = 3 };

struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t chunk_bytes;
  std::atomic<std::uint64_t> threads;
  std::atomic<std::uint64_t> chunks;   // begun; some at the end may never have been written
  std::atomic<std::uint64_t> unknown;  // frees of blocks that were allocated before the recording, or unseen
  std::atomic<std::uint64_t> refused;  // events that found no room on the disk
  std::atomic<std::uint64_t> ended;    // 1: the program ended well
};

struct Chunk {
  std::uint64_t thread;  // from 1; 0: never written
  std::uint64_t sequence;
  std::atomic<std::uint32_t> used;
  std::atomic<std::uint32_t> sum;
  unsigned char bytes[kChunkBytes - 24];
};
static_assert(sizeof(Chunk) == kChunkBytes);

// FNV-1a, never 0.
inline std::uint32_t sum_of(const unsigned char* bytes, std::size_t n) noexcept {
  std::uint32_t sum = 2166136261U;
  for (std::size_t at = 0; at < n; ++at) sum = (sum ^ bytes[at]) * 16777619U;
  return sum == 0 ? 1 : sum;
}

inline unsigned char* put(unsigned char* at, std::uint64_t value) noexcept {
  for (; value >= 128; value >>= 7) *at++ = static_cast<unsigned char>(value | 128);
  *at++ = static_cast<unsigned char>(value);
  return at;
}

// Reads a number; `at` moves behind it. returns false where the bytes end first
inline bool get(const unsigned char*& at, const unsigned char* end, std::uint64_t& value) noexcept {
  value = 0;
  for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
    const unsigned char byte = *at++;
    value |= static_cast<std::uint64_t>(byte & 127) << shift;
    if ((byte & 128) == 0) return true;
  }
  return false;
}

}  // namespace loam::interposer::trace
