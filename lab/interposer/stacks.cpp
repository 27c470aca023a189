// stacks: where a program allocates: the call stacks of sampled blocks.
//   Counts   for each call stack the bytes and blocks asked for, and what of them was live when most was.
//   Source   LOAM_STACKS names the file; each process appends its number to it.  LOAM_STACKS_SAMPLE: mean bytes between
//            samples.  A block of b bytes is sampled with the chance p = 1 - exp(-b / mean) and stands for 1 / p blocks, so
//            sums have no bias.
//   Format   lines: "mean N", "map " and a line of /proc/self/maps, "stack BYTES BLOCKS LIVE_AT_PEAK ADDRESS..." from the
//            innermost caller outwards.  docs/internals/profile.md
//   Cost     a walk of the stack for each sample; of other blocks some thirty instructions when made and freed (marks.hpp).
//   When not a process that ends by _exit or a signal: it says nothing.  Code that was unloaded has no name.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "folder.hpp"
#include "forward.hpp"
#include "marks.hpp"
#include "operators.hpp"
#include "shadow.hpp"
#include "walk.hpp"

namespace loam::interposer {
namespace {

inline constexpr std::size_t kDepth = 62;
inline constexpr unsigned kStackBits = 16;
inline constexpr std::size_t kStacks = (std::size_t{1} << kStackBits) - 1;  // 0: no stack
// The heap has grown by so much of itself since the last look: what is live is kept as the peak.
inline constexpr std::uint64_t kGrowth = 64;

struct Stack {
  std::uint64_t hash;  // 0: free
  std::uint32_t depth;
  std::uintptr_t callers[kDepth];
  std::uint64_t bytes, blocks;
  std::int64_t live, at_peak;
};

Shadow shadow;
Marks marks;
Stack* stacks;
std::int64_t live, peak;
double mean = 64 * 1024;
char path[4096];
constinit Folder folder;

// What here.until is set to; the distance is exponential, so that each byte has the same chance.
std::uint64_t interval() noexcept {
  here.random ^= here.random << 13, here.random ^= here.random >> 7, here.random ^= here.random << 17;
  const double uniform = (static_cast<double>(here.random >> 11) + 1) * 0x1p-53;
  return -(1 + static_cast<std::uint64_t>(-mean * std::log(uniform)));
}

// The stack's entry, made where it is new; nullptr when the table is full.
Stack* entry(const Walk<kDepth>& seen) noexcept {
  std::uint64_t hash = seen.hash();
  hash ^= hash >> 29;
  if (hash == 0) hash = 1;
  for (std::size_t probe = 0; probe < 64; ++probe) {
    Stack& slot = stacks[(hash + probe) % kStacks];
    if (slot.hash == hash) return &slot;
    if (slot.hash != 0) continue;
    slot.hash = hash;
    slot.depth = static_cast<std::uint32_t>(seen.depth);
    std::copy_n(seen.callers, seen.depth, slot.callers);
    return &slot;
  }
  return nullptr;
}

void keep_peak() noexcept {
  if (live <= peak + peak / static_cast<std::int64_t>(kGrowth)) return;
  peak = live;
  for (std::size_t at = 0; at < kStacks; ++at)
    if (stacks[at].hash != 0) stacks[at].at_peak = stacks[at].live;
}

// What a forked child inherits is live in it, but its parent asked for it.
void in_child() noexcept {
  Lock::forget();
  for (std::size_t at = 0; at < kStacks; ++at) stacks[at].bytes = stacks[at].blocks = 0;
}

void copy_maps(std::FILE* file) noexcept {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) return;
  char line[4600];
  while (std::fgets(line, sizeof line, maps) != nullptr) std::fprintf(file, "map %s", line);
  std::fclose(maps);
}

[[gnu::destructor]] void report() {
  if (path[0] == '\0' || !ready || stacks == nullptr) return;
  const Inside unseen;
  char name[sizeof path + 16];
  std::snprintf(name, sizeof name, "%s.%d", path, getpid());
  const int opened = folder.create(name);
  if (std::FILE* file = opened < 0 ? nullptr : fdopen(opened, "w"); file != nullptr) {
    const Lock lock;
    std::fprintf(file, "mean %.0f\n", mean);
    copy_maps(file);
    for (std::size_t at = 0; at < kStacks; ++at) {
      const Stack& one = stacks[at];
      if (one.hash == 0) continue;
      std::fprintf(file, "stack %llu %llu %lld", static_cast<unsigned long long>(one.bytes),
                   static_cast<unsigned long long>(one.blocks),
                   static_cast<long long>(std::max<std::int64_t>(0, one.at_peak)));
      for (std::size_t frame = 0; frame < one.depth; ++frame)
        std::fprintf(file, " %llx", static_cast<unsigned long long>(one.callers[frame]));
      std::fputc('\n', file);
    }
    std::fclose(file);
  }
}

//   bits 63..16: bytes that the block stands for    bits 15..0: its stack, from 1
std::uint64_t word_of(const Stack& stack, std::uint64_t bytes) noexcept {
  return bytes << kStackBits | static_cast<std::uint64_t>(&stack - stacks + 1);
}

}  // namespace

void begin() noexcept {
  const char* wanted = std::getenv("LOAM_STACKS");
  if (wanted != nullptr && std::strlen(wanted) < sizeof path) folder.keep(std::strcpy(path, wanted));
  const char* sample = std::getenv("LOAM_STACKS_SAMPLE");
  if (sample != nullptr && std::strtoull(sample, nullptr, 10) > 0)
    mean = static_cast<double>(std::strtoull(sample, nullptr, 10));
  void* made = mmap(nullptr, kStacks * sizeof(Stack), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return;
  stacks = static_cast<Stack*>(made);
  marks.add_all(early, early_used);
  pthread_atfork(nullptr, nullptr, in_child);
}

namespace {

void sample(void* block, std::size_t bytes) noexcept {
  if (stacks == nullptr) return;
  const Inside unseen;
  const std::uint64_t least = bytes == 0 ? 1 : bytes;
  if (here.random == 0) {
    here.random = 0x9E3779B97F4A7C15 ^ reinterpret_cast<std::uintptr_t>(&here);
    here.until = interval();
    if (!due(least)) return;
  }
  here.until = interval();
  const auto asked = static_cast<double>(least);
  Walk<kDepth> seen;
  seen.take();
  const double stands_for = 1 / -std::expm1(-asked / mean);
  const auto all = static_cast<std::uint64_t>(asked * stands_for + 0.5);
  const Lock lock;
  Stack* stack = entry(seen);
  if (stack == nullptr) return;
  stack->bytes += all;
  stack->blocks += static_cast<std::uint64_t>(stands_for + 0.5);
  stack->live += static_cast<std::int64_t>(all);
  live += static_cast<std::int64_t>(all);
  Shadow::Word* word = shadow.word(block, true);
  if (word != nullptr) {
    marks.add(block);
    // relaxed: who frees the block got it from this thread, in an order that the program made.
    word->store(word_of(*stack, all), std::memory_order_relaxed);
  }
  keep_peak();
}

[[gnu::noinline]] void* sampled(void* block, std::size_t bytes) noexcept {
  sample(block, bytes);
  return block;
}

void sampled_goes(void* block) noexcept {
  Shadow::Word* word = shadow.word(block, false);
  // relaxed: see sample().
  const std::uint64_t known = word == nullptr ? 0 : word->load(std::memory_order_relaxed);
  if (known == 0) return;  // another block has the mark
  const auto bytes = static_cast<std::int64_t>(known >> kStackBits);
  const Lock lock;
  word->store(0, std::memory_order_relaxed);
  marks.remove(block);
  stacks[(known & kStacks) - 1].live -= bytes;
  live -= bytes;
}

}  // namespace

[[gnu::always_inline]] inline bool passes(std::size_t bytes) noexcept { return !due(bytes == 0 ? 1 : bytes); }

[[gnu::always_inline]] inline void* allocated(void* block, std::size_t bytes, bool) noexcept {
  return sampled(block, bytes);
}

[[gnu::always_inline]] inline bool gone_quickly(void* block) noexcept { return !marks.may_have(block); }

[[gnu::always_inline]] inline void entered(void*) noexcept {}

void freeing(void* block) noexcept {
  if (block != nullptr && here.depth == 0 && !is_early(block)) sampled_goes(block);
}

}  // namespace loam::interposer
