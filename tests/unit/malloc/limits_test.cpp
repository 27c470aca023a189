// Where memory ends: a limit on the address space in a child process, and requests that no machine can serve.
#include "tests/harness/child.hpp"
#include "tests/unit/malloc/blocks.hpp"

#include "include/loam/malloc.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

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
