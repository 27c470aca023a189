// The interface of C: each rule of C17, C23, POSIX and glibc 2.36 that docs/internals/malloc.md states, one test each.
// The program is linked with libloam-malloc.so, so GoogleTest and the C++ library run on it too.
#include "tests/unit/malloc/blocks.hpp"

#include "include/loam/malloc.h"

#include <malloc.h>
#include <unistd.h>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <vector>

extern "C" {
void cfree(void*);
void free_sized(void*, std::size_t);
void free_aligned_sized(void*, std::size_t, std::size_t);
void* __libc_malloc(std::size_t);
void __libc_free(void*);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace loam::tests {
namespace {

constexpr int kOther = EXDEV;  // an errno that no allocator sets

class Conformance : public testing::Test {
 protected:
  void SetUp() override { errno = kOther; }
  void TearDown() override { EXPECT_EQ(loam_malloc_verify(), nullptr); }
};

#define LOAM_EXPECT_REFUSED(call, code) \
  do {                                  \
    errno = kOther;                     \
    EXPECT_EQ((call), nullptr);         \
    EXPECT_EQ(errno, code);             \
  } while (false)

TEST_F(Conformance, EveryEntryPointIsOurs) {
  for (const char* name : {"malloc",
                           "free",
                           "calloc",
                           "realloc",
                           "reallocarray",
                           "cfree",
                           "free_sized",
                           "free_aligned_sized",
                           "aligned_alloc",
                           "posix_memalign",
                           "memalign",
                           "valloc",
                           "pvalloc",
                           "malloc_usable_size",
                           "malloc_trim",
                           "mallinfo",
                           "mallinfo2",
                           "mallopt",
                           "malloc_stats",
                           "malloc_info",
                           "__libc_malloc",
                           "__libc_free",
                           "__libc_calloc",
                           "__libc_realloc",
                           "__libc_memalign",
                           "__libc_valloc",
                           "__libc_pvalloc",
                           "loam_malloc_json",
                           "loam_malloc_summary",
                           "loam_malloc_verify"})
    EXPECT_EQ(object_of(dlsym(RTLD_DEFAULT, name)), kLibrary) << name;
}

// ---- malloc, free ----

TEST_F(Conformance, MallocAlignsEveryBlockTo16) {
  for (const std::size_t bytes : kSizes) {
    void* const block = malloc(opaque(bytes));
    ASSERT_NE(block, nullptr) << bytes;
    EXPECT_TRUE(is_aligned(block, 16)) << bytes;
    free(block);
  }
}

TEST_F(Conformance, MallocKeepsErrnoWhereItSucceeds) {
  for (const std::size_t bytes : kSizes) {
    void* const block = malloc(opaque(bytes));
    EXPECT_EQ(errno, kOther) << bytes;
    free(block);
  }
}

TEST_F(Conformance, FreeKeepsErrno) {
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{100000}, std::size_t{100} << 20}) {
    void* const block = malloc(opaque(bytes));
    errno = kOther;
    free(block);
    EXPECT_EQ(errno, kOther) << bytes;
  }
}

TEST_F(Conformance, FreeOfNullDoesNothing) {
  free(opaque<void*>(nullptr));
  cfree(nullptr);
  free_sized(nullptr, 0);
  free_sized(nullptr, 100);
  free_aligned_sized(nullptr, 64, 100);
  EXPECT_EQ(errno, kOther);
}

TEST_F(Conformance, MallocOfNothingIsABlockOfItsOwn) {
  std::set<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.insert(malloc(opaque<std::size_t>(0)));
  EXPECT_EQ(blocks.size(), 100u);
  EXPECT_EQ(blocks.count(nullptr), 0u);
  for (void* block : blocks) free(block);
}

TEST_F(Conformance, LiveBlocksDoNotOverlap) {
  std::vector<void*> blocks;
  for (unsigned round = 0; round < 20; ++round)
    for (const std::size_t bytes : kSizes) {
      blocks.push_back(malloc(opaque(bytes)));
      ASSERT_NE(blocks.back(), nullptr);
      fill(blocks.back(), bytes < 70000 ? bytes : 70000, static_cast<unsigned>(blocks.size()));
    }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::size_t bytes = kSizes[i % std::size(kSizes)];
    EXPECT_TRUE(is_filled(blocks[i], bytes < 70000 ? bytes : 70000, static_cast<unsigned>(i + 1))) << bytes;
    free(blocks[i]);
  }
}

TEST_F(Conformance, MallocBeyondTheAddressSpaceIsENOMEM) {
  for (const std::size_t bytes : {kBytesMax, kBytesMax + 1, SIZE_MAX - 4096, SIZE_MAX - 1, SIZE_MAX})
    LOAM_EXPECT_REFUSED(malloc(opaque(bytes)), ENOMEM);
}

TEST_F(Conformance, FreeSizedTakesTheSizeThatWasAskedFor) {
  for (const std::size_t bytes : kSizes) {
    free_sized(malloc(opaque(bytes)), bytes);
    free_sized(calloc(1, opaque(bytes)), bytes);
  }
  EXPECT_EQ(errno, kOther);
}

TEST_F(Conformance, FreeAlignedSizedTakesSizeAndAlignment) {
  for (const std::size_t alignment : {16, 64, 512, 4096, 1 << 21})
    for (const std::size_t bytes : kSizes)
      free_aligned_sized(aligned_alloc(alignment, opaque(bytes)), alignment, bytes);
  EXPECT_EQ(errno, kOther);
}

TEST_F(Conformance, WhatFreesABlockGivesItBack) {
  struct Form {
    const char* name;
    void (*end)(void* block, std::size_t bytes);
  };
  const Form forms[] = {
      {"free", [](void* block, std::size_t) { free(block); }},
      {"cfree", [](void* block, std::size_t) { cfree(block); }},
      {"free_sized", free_sized},
      {"free_aligned_sized", [](void* block, std::size_t bytes) { free_aligned_sized(block, 16, bytes); }},
      {"realloc", [](void* block, std::size_t) { EXPECT_EQ(realloc(block, opaque<std::size_t>(0)), nullptr); }},
      {"reallocarray",
       [](void* block, std::size_t) { EXPECT_EQ(reallocarray(block, opaque<std::size_t>(0), 8), nullptr); }},
      {"__libc_free", [](void* block, std::size_t) { __libc_free(block); }},
  };
  for (const Form& form : forms)
    for (const std::size_t bytes : {100, 40000, 1 << 20})
      EXPECT_LT(kept_of_32_mib(bytes, malloc, form.end), kKeptMax) << form.name << " of " << bytes;
}

TEST_F(Conformance, GlibcsOwnNamesMeanTheSameHeap) {
  void* const block = __libc_malloc(opaque<std::size_t>(100));
  EXPECT_GE(malloc_usable_size(block), 100u);
  free(block);
  __libc_free(malloc(opaque<std::size_t>(100)));
  void* const aligned = __libc_memalign(256, opaque<std::size_t>(100));
  EXPECT_TRUE(is_aligned(aligned, 256));
  free(aligned);
}

// ---- calloc ----

TEST_F(Conformance, CallocZeroesRecycledBlocks) {
  for (const std::size_t bytes : kSizes) {
    for (int round = 0; round < 3; ++round) {
      auto* const block = static_cast<unsigned char*>(calloc(opaque<std::size_t>(1), bytes));
      ASSERT_NE(block, nullptr);
      std::size_t others = 0;
      for (std::size_t i = 0; i < bytes; ++i) others += block[i] != 0;
      EXPECT_EQ(others, 0u) << bytes;
      std::memset(block, 0xff, bytes);
      free(block);
    }
  }
}

TEST_F(Conformance, CallocOfNothingIsABlock) {
  for (const auto& [count, size] : {std::pair<std::size_t, std::size_t>{0, 0}, {0, 100}, {100, 0}, {0, SIZE_MAX}}) {
    void* const block = calloc(opaque(count), opaque(size));
    EXPECT_NE(block, nullptr);
    free(block);
  }
}

TEST_F(Conformance, CallocOverflowIsENOMEM) {
  LOAM_EXPECT_REFUSED(calloc(opaque(SIZE_MAX), opaque<std::size_t>(2)), ENOMEM);
  LOAM_EXPECT_REFUSED(calloc(opaque(std::size_t{1} << 33), opaque(std::size_t{1} << 33)), ENOMEM);
  // What is left of these products is a size that would be served.
  LOAM_EXPECT_REFUSED(calloc(opaque(SIZE_MAX / 2 + 1), opaque<std::size_t>(2)), ENOMEM);
  LOAM_EXPECT_REFUSED(calloc(opaque(SIZE_MAX / 2 + 3), opaque<std::size_t>(2)), ENOMEM);
  LOAM_EXPECT_REFUSED(calloc(opaque<std::size_t>(2), opaque(SIZE_MAX / 2 + 3)), ENOMEM);
  LOAM_EXPECT_REFUSED(calloc(opaque<std::size_t>(1), opaque(kBytesMax + 1)), ENOMEM);
}

// ---- realloc ----

TEST_F(Conformance, ReallocOfNullAllocates) {
  void* const block = realloc(opaque<void*>(nullptr), 100);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(errno, kOther);
  free(block);
  void* const nothing = realloc(opaque<void*>(nullptr), 0);
  EXPECT_NE(nothing, nullptr);
  free(nothing);
}

TEST_F(Conformance, ReallocToNothingFrees) {
  for (int i = 0; i < 10000; ++i) {
    void* block = malloc(opaque<std::size_t>(1 << 20));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(block = realloc(block, opaque<std::size_t>(0)), nullptr);
  }
  EXPECT_EQ(errno, kOther);
}

TEST_F(Conformance, ReallocKeepsTheContentUpToTheSmallerSize) {
  for (const std::size_t from : kSizes)
    for (const std::size_t to : kSizes) {
      if (to == 0) continue;
      void* block = malloc(opaque(from));
      fill(block, from, 3);
      block = realloc(block, opaque(to));
      ASSERT_NE(block, nullptr);
      EXPECT_TRUE(is_aligned(block, 16));
      EXPECT_TRUE(is_filled(block, from < to ? from : to, 3)) << from << " to " << to;
      EXPECT_GE(malloc_usable_size(block), to);
      free(block);
    }
  EXPECT_EQ(errno, kOther);
}

TEST_F(Conformance, ReallocThatFailsKeepsTheBlock) {
  void* const block = malloc(opaque<std::size_t>(1000));
  fill(block, 1000, 9);
  for (const std::size_t bytes : {kBytesMax, kBytesMax + 1, SIZE_MAX}) {
    LOAM_EXPECT_REFUSED(realloc(block, opaque(bytes)), ENOMEM);
    EXPECT_TRUE(is_filled(block, 1000, 9));
  }
  free(block);
}

TEST_F(Conformance, ReallocOfAnAlignedBlockKeepsItsContent) {
  void* block = aligned_alloc(4096, opaque<std::size_t>(5000));
  fill(block, 5000, 5);
  block = realloc(block, opaque<std::size_t>(50000));
  EXPECT_TRUE(is_filled(block, 5000, 5));
  free(block);
}

TEST_F(Conformance, ReallocarrayOverflowIsENOMEMAndKeepsTheBlock) {
  void* block = malloc(opaque<std::size_t>(1000));
  fill(block, 1000, 1);
  LOAM_EXPECT_REFUSED(reallocarray(block, opaque(SIZE_MAX), opaque<std::size_t>(2)), ENOMEM);
  LOAM_EXPECT_REFUSED(reallocarray(block, opaque(std::size_t{1} << 33), opaque(std::size_t{1} << 33)), ENOMEM);
  // What is left of these products is 4, 0 and 1000: a size that would be served, the block freed, or kept as it is.
  LOAM_EXPECT_REFUSED(reallocarray(block, opaque(SIZE_MAX / 2 + 3), opaque<std::size_t>(2)), ENOMEM);
  LOAM_EXPECT_REFUSED(reallocarray(block, opaque<std::size_t>(2), opaque(SIZE_MAX / 2 + 1)), ENOMEM);
  LOAM_EXPECT_REFUSED(reallocarray(block, opaque(SIZE_MAX / 2 + 501), opaque<std::size_t>(2)), ENOMEM);
  EXPECT_TRUE(is_filled(block, 1000, 1));
  EXPECT_GE(malloc_usable_size(block), 1000u);
  block = reallocarray(block, opaque<std::size_t>(300), opaque<std::size_t>(10));
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(is_filled(block, 1000, 1));
  EXPECT_EQ(reallocarray(block, opaque<std::size_t>(0), 10), nullptr);  // frees, as realloc
}

// ---- alignment ----

TEST_F(Conformance, AlignedAllocAlignsToAnyPowerOfTwo) {
  for (std::size_t alignment = 1; alignment <= std::size_t{1} << 26; alignment *= 2)
    for (const std::size_t bytes : {0, 1, 24, 100, 5000, 100000}) {  // C17: a size need not be a multiple
      void* const block = aligned_alloc(opaque(alignment), opaque(bytes));
      ASSERT_NE(block, nullptr) << alignment;
      EXPECT_TRUE(is_aligned(block, alignment)) << alignment << " " << bytes;
      EXPECT_GE(malloc_usable_size(block), bytes);
      fill(block, bytes, 1);
      free(block);
    }
  EXPECT_EQ(errno, kOther);
}

TEST_F(Conformance, AlignedAllocOfNoPowerOfTwoIsEINVAL) {
  for (const std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{24}, std::size_t{48}, SIZE_MAX})
    LOAM_EXPECT_REFUSED(aligned_alloc(opaque(alignment), opaque<std::size_t>(48)), EINVAL);
}

TEST_F(Conformance, PosixMemalignAligns) {
  for (std::size_t alignment = sizeof(void*); alignment <= std::size_t{1} << 22; alignment *= 2)
    for (const std::size_t bytes : {0, 1, 100, 70000}) {
      void* block = nullptr;
      ASSERT_EQ(posix_memalign(&block, opaque(alignment), opaque(bytes)), 0);
      ASSERT_NE(block, nullptr);  // size 0 too: it can be freed
      EXPECT_TRUE(is_aligned(block, alignment));
      free(block);
    }
  EXPECT_EQ(errno, kOther);
}

TEST_F(Conformance, PosixMemalignTellsErrorsByItsResultAlone) {
  void* const before = reinterpret_cast<void*>(0x1230);
  void* block = before;
  for (const std::size_t alignment :
       {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{12}, std::size_t{24}, SIZE_MAX})
    EXPECT_EQ(posix_memalign(&block, opaque(alignment), 100), EINVAL) << alignment;
  EXPECT_EQ(posix_memalign(&block, 64, opaque(kBytesMax + 1)), ENOMEM);
  EXPECT_EQ(posix_memalign(&block, 64, opaque(SIZE_MAX)), ENOMEM);
  EXPECT_EQ(block, before);
  EXPECT_EQ(errno, kOther);
}

TEST_F(Conformance, MemalignRoundsTheAlignmentUp) {
  for (const auto& [asked, given] : {std::pair<std::size_t, std::size_t>{0, 16},
                                     {1, 16},
                                     {24, 32},
                                     {48, 64},
                                     {100, 128},
                                     {4096, 4096},
                                     {(1 << 21) + 1, 1 << 22}}) {
    void* const block = memalign(opaque(asked), opaque<std::size_t>(100));
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(is_aligned(block, given)) << asked;
    free(block);
  }
  LOAM_EXPECT_REFUSED(memalign(opaque((SIZE_MAX >> 1) + 2), opaque<std::size_t>(100)), EINVAL);
}

TEST_F(Conformance, VallocAlignsToPages) {
  const auto page = static_cast<std::size_t>(getpagesize());
  for (const std::size_t bytes : kSizes) {
    void* const block = valloc(opaque(bytes));
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(is_aligned(block, page));
    free(block);
  }
  LOAM_EXPECT_REFUSED(valloc(opaque(SIZE_MAX)), ENOMEM);
}

TEST_F(Conformance, PvallocGivesWholePages) {
  const auto page = static_cast<std::size_t>(getpagesize());
  for (const std::size_t bytes : kSizes) {
    void* const block = pvalloc(opaque(bytes));
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(is_aligned(block, page));
    EXPECT_GE(malloc_usable_size(block), (bytes + page - 1) / page * page);
    free(block);
  }
}

TEST_F(Conformance, PvallocOverflowIsENOMEM) {
  for (const std::size_t bytes : {kBytesMax, kBytesMax + 1, SIZE_MAX - 4095, SIZE_MAX - 1, SIZE_MAX})
    LOAM_EXPECT_REFUSED(pvalloc(opaque(bytes)), ENOMEM);
}

TEST_F(Conformance, AllOfTheUsableSizeIsWritable) {
  EXPECT_EQ(malloc_usable_size(nullptr), 0u);
  std::vector<void*> blocks;
  for (int round = 0; round < 4; ++round)
    for (const std::size_t bytes : kSizes) {
      blocks.push_back(malloc(opaque(bytes)));
      ASSERT_GE(malloc_usable_size(blocks.back()), bytes);
      fill(blocks.back(), malloc_usable_size(blocks.back()), static_cast<unsigned>(blocks.size()));
    }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_TRUE(is_filled(blocks[i], malloc_usable_size(blocks[i]), static_cast<unsigned>(i + 1)));
    free(blocks[i]);
  }
}

}  // namespace
}  // namespace loam::tests
