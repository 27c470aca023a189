// Where memory ends: a limit on the address space in a child process, and requests that no machine can serve.
#include "tests/harness/child.hpp"
#include "tests/unit/malloc/blocks.hpp"

#include "include/loam/malloc.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

namespace loam::tests {
namespace {

std::size_t address_space_bytes() {
  std::size_t pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%zu", &pages) != 1) pages = 0;
  if (file != nullptr) std::fclose(file);
  return pages * static_cast<std::size_t>(getpagesize());
}

// Allows this process so many bytes more than it has.
void limit(std::size_t bytes) {
  const rlim_t most = address_space_bytes() + bytes;
  const rlimit now{most, most};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &now), 0);
}

// Blocks linked through their first word: no container that would allocate.
struct Chain {
  Chain* next;
};

// Allocates until there is no more. errno stays where a block is given, though the system may have refused what the
// heap asked for first. returns how many blocks there were; -1 if the failure was not ENOMEM
long use_up(std::size_t bytes, Chain*& first) {
  // What was reserved before the limit can be used up too: 64 GiB are more than any reservation.
  const long most = static_cast<long>((std::size_t{64} << 30) / bytes);
  for (long count = 0; count < most; ++count) {
    errno = EXDEV;
    auto* const block = static_cast<Chain*>(malloc(bytes));
    if (block == nullptr) return errno == ENOMEM ? count : -1;
    EXPECT_EQ(errno, EXDEV) << "block " << count << " of " << bytes;
    block->next = first;
    first = block;
  }
  return -1;
}

void free_all(Chain*& first) {
  errno = EXDEV;
  while (first != nullptr) {
    Chain* const next = first->next;
    free(first);
    first = next;
  }
  EXPECT_EQ(errno, EXDEV);
}

TEST(Limits, UsedUpIsENOMEMAndAllIsWellAfterFreeing) {
  for (const std::size_t bytes : {std::size_t{32} << 10, std::size_t{1} << 20, std::size_t{48} << 20})
    in_child([&] {
      limit(std::size_t{256} << 20);
      for (int round = 0; round < 3; ++round) {
        Chain* first = nullptr;
        const long count = use_up(bytes, first);
        EXPECT_GE(count, 1) << bytes;
        errno = 0;
        EXPECT_EQ(calloc(opaque<std::size_t>(1), std::size_t{1} << 40), nullptr);
        EXPECT_EQ(errno, ENOMEM);
        free_all(first);
        void* const block = malloc(bytes);
        EXPECT_NE(block, nullptr);
        free(block);
      }
      EXPECT_EQ(loam_malloc_verify(), nullptr);
    });
}

TEST(Limits, OtherSizesAreServedFromWhatOneSizeGaveBack) {
  in_child([] {
    limit(std::size_t{256} << 20);
    Chain* first = nullptr;
    const long small = use_up(std::size_t{32} << 10, first);
    free_all(first);
    const long large = use_up(std::size_t{8} << 20, first);
    free_all(first);
    // In bytes at least half of what there was: the rest may be held by size classes and pages between.
    EXPECT_GE(large * 256 * 2, small) << small << " blocks of 32 KiB, " << large << " of 8 MiB";
  });
}

TEST(Limits, NewThrowsAndReallocKeepsTheBlock) {
  in_child([] {
    limit(std::size_t{64} << 20);
    void* const block = malloc(opaque<std::size_t>(1000));
    fill(block, 1000, 4);
    EXPECT_EQ(realloc(block, std::size_t{1} << 40), nullptr);
    EXPECT_TRUE(is_filled(block, 1000, 4));
    EXPECT_THROW((void)::operator new(std::size_t{1} << 40), std::bad_alloc);
    EXPECT_EQ(::operator new(std::size_t{1} << 40, std::nothrow), nullptr);
    free(block);
  });
}

TEST(Limits, AThreadThatUsesUpAllIsServedAfterFreeing) {
  in_child([] {
    limit(std::size_t{256} << 20);
    bool refused = false, served = false;
    std::thread thread([&] {
      Chain* own = nullptr;
      refused = use_up(std::size_t{1} << 20, own) >= 0;
      free_all(own);
      void* const block = malloc(opaque<std::size_t>(100));
      served = block != nullptr;
      free(block);
    });
    thread.join();
    EXPECT_TRUE(refused);
    EXPECT_TRUE(served);
  });
}

// A block of a chain, filled behind this.
struct Filled {
  Chain link;
  std::size_t bytes;
  unsigned seed;

  void* contents() { return this + 1; }
  bool is_whole() { return is_filled(contents(), bytes, seed); }
};

// Every way to ask for memory, in turn, until none is served.
TEST(Limits, EveryFunctionFailsWithENOMEMAndHarmsNoBlock) {
  in_child([] {
    limit(std::size_t{64} << 20);
    Chain* first = nullptr;
    std::size_t bytes = 0;
    for (unsigned refused = 0, turn = 0; refused < 5; ++turn) {
      errno = 0;
      void* block = nullptr;
      const std::size_t wanted = 20000 + turn % 7 * 3000;
      switch (turn % 5) {
        case 0:
          block = malloc(opaque(wanted));
          break;
        case 1:
          block = calloc(opaque(wanted), 1);
          break;
        case 2:
          block = aligned_alloc(4096, opaque(wanted));
          break;
        case 3:
          block = realloc(nullptr, opaque(wanted));
          break;
        default:
          errno = posix_memalign(&block, 256, opaque(wanted));
      }
      if (block == nullptr) {
        EXPECT_EQ(errno, ENOMEM) << turn;
        if (first != nullptr) {
          errno = 0;
          EXPECT_EQ(realloc(first, std::size_t{300} << 20), nullptr);
          EXPECT_EQ(errno, ENOMEM);
        }
        ++refused;
        continue;
      }
      refused = 0;
      bytes += wanted;
      auto* const filled = new (block) Filled{{first}, wanted % 977, turn};
      fill(filled->contents(), filled->bytes, filled->seed);
      first = &filled->link;
    }
    unsigned harmed = 0;
    for (Chain* link = first; link != nullptr; link = link->next)
      harmed += reinterpret_cast<Filled*>(link)->is_whole() ? 0 : 1;
    EXPECT_EQ(harmed, 0u);
    EXPECT_GE(bytes, std::size_t{32} << 20);
    EXPECT_EQ(loam_malloc_verify(), nullptr);
    free_all(first);
    const long again = use_up(std::size_t{3000}, first);
    EXPECT_GE(static_cast<std::size_t>(again) * 3000, bytes / 10 * 9) << "of " << bytes << " bytes";
    free_all(first);
  });
}

// The heap of a thread is memory too: without it a thread gets nothing, but frees what others made.
TEST(Limits, AThreadThatFindsNoMemoryForItsHeapFreesAllTheSame) {
  in_child([] {
    std::atomic<int> stage{0};
    void* const of_main = malloc(opaque<std::size_t>(500));
    bool refused = false, named = false, served = false;
    std::thread thread([&] {
      while (stage != 1) std::this_thread::yield();
      errno = 0;
      void* const none = malloc(opaque<std::size_t>(100));
      refused = none == nullptr;
      named = errno == ENOMEM;
      free(of_main);
      stage = 2;
      while (stage != 3) std::this_thread::yield();
      void* const block = malloc(opaque<std::size_t>(100));
      served = block != nullptr;
      free(block);
    });
    constexpr std::size_t kPage = 4096, kMappings = 10000;
    static void* mappings[kMappings];
    limit(std::size_t{8} << 20);
    std::size_t mapped = 0;
    for (; mapped < kMappings; ++mapped) {
      mappings[mapped] = mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (mappings[mapped] == MAP_FAILED) break;
    }
    stage = 1;
    while (stage != 2) std::this_thread::yield();
    for (std::size_t i = 0; i < mapped; ++i) munmap(mappings[i], kPage);
    stage = 3;
    thread.join();
    EXPECT_LT(mapped, kMappings);
    EXPECT_TRUE(refused);
    EXPECT_TRUE(named);
    EXPECT_TRUE(served);
    EXPECT_EQ(loam_malloc_verify(), nullptr);
  });
}

TEST(Limits, ThreadsThatUseUpAllTogetherAreServedAfterFreeing) {
  in_child([] {
    constexpr unsigned kThreads = 4;
    std::atomic<bool> start{false};
    std::atomic<unsigned> refused{0}, done{0}, served{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        while (!start) std::this_thread::yield();
        Chain* own = nullptr;
        for (unsigned round = 0; round < 3; ++round) {
          refused += use_up(6000 + t * 20000 + round * 100, own) >= 0 ? 1 : 0;
          free_all(own);
        }
        ++done;
        while (done != kThreads) std::this_thread::yield();
        void* const block = malloc(opaque<std::size_t>(100000));
        served += block != nullptr ? 1 : 0;
        free(block);
      });
    limit(std::size_t{64} << 20);
    start = true;
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(refused, 3 * kThreads);
    EXPECT_EQ(served, kThreads);
    EXPECT_EQ(loam_malloc_verify(), nullptr);
  });
}

// The kernel's rule for promises of memory (proc(5)): 0: no more at once than there is, 1: any, 2: no more in all.
int overcommit_rule() {
  int rule = 0;
  std::FILE* const file = std::fopen("/proc/sys/vm/overcommit_memory", "r");
  if (file == nullptr || std::fscanf(file, "%d", &rule) != 1) rule = 0;
  if (file != nullptr) std::fclose(file);
  return rule;
}

std::size_t memory_and_swap_bytes() {
  struct sysinfo now{};
  EXPECT_EQ(sysinfo(&now), 0);
  return (now.totalram + now.totalswap) * now.mem_unit;
}

// What no machine state could ever back is refused at once. Otherwise a program that fills its block, as
// bytearray(10**12) in Python does, would run until the kernel ends it.
TEST(Limits, MoreThanTheMemoryOfTheMachineIsRefused) {
  if (overcommit_rule() == 1) GTEST_SKIP() << "vm.overcommit_memory = 1: this machine promises any amount";
  void* const old = malloc(opaque<std::size_t>(1000));
  fill(old, 1000, 6);
  const std::size_t there_is = memory_and_swap_bytes();
  for (const std::size_t bytes : {there_is + (there_is >> 4), 2 * there_is, std::size_t{1000} << 30,
                                  std::size_t{1} << 46, std::size_t{1} << 60}) {
    if (bytes <= there_is) continue;
    const auto expect_refused = [bytes](const char* what, auto allocate) {
      errno = 0;
      EXPECT_EQ(allocate(), nullptr) << what << " of " << bytes;
      EXPECT_EQ(errno, ENOMEM) << what << " of " << bytes;
    };
    expect_refused("malloc", [&] { return malloc(opaque(bytes)); });
    expect_refused("calloc", [&] { return calloc(opaque<std::size_t>(1), bytes); });
    expect_refused("calloc of many", [&] { return calloc(opaque(bytes / 4096 + 1), 4096); });
    expect_refused("realloc", [&] { return realloc(old, opaque(bytes)); });
    expect_refused("realloc of nothing", [&] { return realloc(nullptr, opaque(bytes)); });
    expect_refused("reallocarray", [&] { return reallocarray(old, opaque(bytes / 64 + 1), 64); });
    expect_refused("aligned_alloc", [&] { return aligned_alloc(64, opaque(bytes)); });
    expect_refused("aligned_alloc to 2 MiB", [&] { return aligned_alloc(std::size_t{2} << 20, opaque(bytes)); });
    expect_refused("memalign", [&] { return memalign(4096, opaque(bytes)); });
    expect_refused("valloc", [&] { return valloc(opaque(bytes)); });
    expect_refused("pvalloc", [&] { return pvalloc(opaque(bytes)); });
    void* out = old;
    EXPECT_EQ(posix_memalign(&out, 64, opaque(bytes)), ENOMEM) << bytes;
    EXPECT_EQ(out, old);
    EXPECT_THROW((void)::operator new(opaque(bytes)), std::bad_alloc);
    EXPECT_THROW((void)::operator new[](opaque(bytes)), std::bad_alloc);
    EXPECT_THROW((void)::operator new(opaque(bytes), std::align_val_t{256}), std::bad_alloc);
    EXPECT_EQ(::operator new(opaque(bytes), std::nothrow), nullptr);
  }
  EXPECT_TRUE(is_filled(old, 1000, 6));
  // A block with pages of its own that would have to grow beyond.
  void* const longer = realloc(old, std::size_t{80} << 20);
  ASSERT_NE(longer, nullptr);
  errno = 0;
  EXPECT_EQ(realloc(longer, opaque(2 * there_is)), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_TRUE(is_filled(longer, 1000, 6));
  free(longer);
  EXPECT_EQ(loam_malloc_verify(), nullptr);
}

// What the machine could back is promised, also several times over: only the kernel's rule for single requests counts.
TEST(Limits, HalfOfTheMemoryOfTheMachineIsServedUntouched) {
  if (overcommit_rule() == 2) GTEST_SKIP() << "vm.overcommit_memory = 2: the kernel adds up all promises";
  void* blocks[4];
  for (void*& block : blocks) EXPECT_NE(block = malloc(memory_and_swap_bytes() / 2), nullptr);
  for (void* const block : blocks) free(block);
}

TEST(Limits, SizesNearTheEndOfTheAddressSpaceAreRefused) {
  for (std::size_t distance = 0; distance < 70000; distance = distance * 3 + 1) {
    for (const std::size_t bytes : {SIZE_MAX - distance, kBytesMax - distance, kBytesMax + 1 + distance}) {
      errno = 0;
      EXPECT_EQ(malloc(opaque(bytes)), nullptr);
      EXPECT_EQ(errno, ENOMEM) << bytes;
      for (const std::size_t alignment : {std::size_t{16}, std::size_t{4096}, std::size_t{1} << 30}) {
        errno = 0;
        EXPECT_EQ(aligned_alloc(alignment, opaque(bytes)), nullptr);
        EXPECT_EQ(errno, ENOMEM) << bytes << " aligned " << alignment;
      }
    }
  }
}

TEST(Limits, AlignmentsNearTheEndOfTheAddressSpaceAreRefused) {
  for (int shift = 48; shift < 64; ++shift) {
    const std::size_t alignment = std::size_t{1} << shift;
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{100}, alignment, kBytesMax, SIZE_MAX}) {
      errno = 0;
      EXPECT_EQ(aligned_alloc(opaque(alignment), opaque(bytes)), nullptr) << shift;
      EXPECT_EQ(errno, ENOMEM) << shift;
      void* block = nullptr;
      EXPECT_EQ(posix_memalign(&block, opaque(alignment), opaque(bytes)), ENOMEM) << shift;
      errno = 0;
      EXPECT_EQ(memalign(opaque(alignment), opaque(bytes)), nullptr) << shift;
      EXPECT_EQ(errno, ENOMEM) << shift;
    }
  }
}

TEST(Limits, LargeAlignmentsThatFitAreServed) {
  for (int shift = 21; shift <= 30; ++shift) {
    void* const block = aligned_alloc(std::size_t{1} << shift, opaque<std::size_t>(100));
    if (shift <= 26) {
      ASSERT_NE(block, nullptr) << shift;
    }
    EXPECT_TRUE(is_aligned(block, std::size_t{1} << shift));
    free(block);
  }
}

}  // namespace
}  // namespace loam::tests
