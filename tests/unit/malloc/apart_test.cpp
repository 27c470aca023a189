// LOAM_MALLOC_APART in a process: blocks of the listed sites own their cache lines, whatever is done with them; all others
// lie as without it. Each test runs once more in a process with a file of sites.
//   The sites: every address of the functions below, which lie in sections of their own, so nobody needs to know where in
//   them a call returns to.
#include "tests/unit/malloc/blocks.hpp"
#include "tests/unit/support/process.hpp"

#include "include/loam/malloc.h"

#include <sys/stat.h>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>
#include <thread>
#include <vector>

extern "C" {
void free_sized(void*, std::size_t);
extern const char __start_apart_listed[], __stop_apart_listed[];
extern const char __start_apart_inner[], __stop_apart_inner[];
extern const char __start_apart_outer[], __stop_apart_outer[];
extern const char __executable_start[];
}

#define LISTED gnu::noinline, gnu::section("apart_listed")

namespace loam::tests {
namespace {

[[LISTED]] void* listed_malloc(std::size_t bytes) {
  void* const block = ::malloc(bytes);
  asm("" ::: "memory");  // no tail call: the call returns to this function
  return block;
}
[[LISTED]] void* listed_calloc(std::size_t bytes) {
  void* const block = ::calloc(1, bytes);
  asm("" ::: "memory");
  return block;
}
[[LISTED]] void* listed_realloc(void* block, std::size_t bytes) {
  void* const moved = ::realloc(block, bytes);
  asm("" ::: "memory");
  return moved;
}
[[LISTED]] void* listed_aligned(std::size_t alignment, std::size_t bytes) {
  void* const block = ::aligned_alloc(alignment, bytes);
  asm("" ::: "memory");
  return block;
}
[[LISTED]] void* listed_posix(std::size_t alignment, std::size_t bytes) {
  void* block = nullptr;
  const int failed = ::posix_memalign(&block, alignment, bytes);
  asm("" ::: "memory");
  return failed != 0 ? nullptr : block;
}
[[LISTED]] void* listed_new(std::size_t bytes) {
  void* const block = ::operator new(bytes);
  asm("" ::: "memory");
  return block;
}
[[LISTED]] void* listed_nothrow(std::size_t bytes) {
  void* const block = ::operator new(bytes, std::nothrow);
  asm("" ::: "memory");
  return block;
}
// A wrapper of malloc, of whose callers one is listed.
[[gnu::noinline, gnu::section("apart_inner")]] void* wrapper(std::size_t bytes) {
  void* const block = ::malloc(bytes);
  asm("" ::: "memory");
  return block;
}
[[gnu::noinline, gnu::section("apart_outer")]] void* listed_caller(std::size_t bytes) {
  void* const block = wrapper(bytes);
  asm("" ::: "memory");
  return block;
}
[[gnu::noinline]] void* other_caller(std::size_t bytes) {
  void* const block = wrapper(bytes);
  asm("" ::: "memory");
  return block;
}

// Every address behind a function's first one, in the file's form.
std::vector<std::string> frames(const char* start, const char* stop) {
  const bool is_fixed = [] {
    std::ifstream self("/proc/self/exe", std::ios::binary);
    char head[18] = {};
    self.read(head, sizeof head);
    return head[16] == 2;
  }();
  std::vector<std::string> all;
  for (const char* at = start + 1; at < stop; ++at) {
    char text[40];
    std::snprintf(text, sizeof text, "0+%lx",
                  static_cast<unsigned long>(reinterpret_cast<std::uintptr_t>(at) -
                                             (is_fixed ? 0 : reinterpret_cast<std::uintptr_t>(__executable_start))));
    all.push_back(text);
  }
  return all;
}

std::string self() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string head_of_file() {
  struct stat about{};
  EXPECT_EQ(stat(self().c_str(), &about), 0);
  return "loam-apart 1\nmodule file " + std::to_string(about.st_size) + " " +
         std::to_string(about.st_mtim.tv_sec * 1'000'000'000 + about.st_mtim.tv_nsec) + " " + self() + "\n";
}

std::string listed_sites() {
  std::string text = head_of_file();
  for (const std::string& frame : frames(__start_apart_listed, __stop_apart_listed)) text += "site " + frame + "\n";
  return text;
}

// Whether this is the process with the file. In the other one, runs the current test in it.
bool is_apart(const std::string& sites = listed_sites()) {
  if (std::getenv("LOAM_MALLOC_APART") != nullptr) return true;
  const TemporaryFolder folder;
  const auto file = folder.path() / "sites";
  std::ofstream(file) << sites;
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const Finished done = run("LOAM_MALLOC_APART=" + file.string() + " " + self() +
                            " --gtest_filter=" + test.test_suite_name() + "." + test.name());
  EXPECT_EQ(done.status, 0) << done.out << done.err;
  EXPECT_NE(done.out.find("[  PASSED  ] 1 test"), std::string::npos) << done.out;
  EXPECT_EQ(done.err, "");
  return false;
}

constexpr std::size_t kLine = 64;
// Whether no other block can lie in the lines of this one.
bool owns_its_lines(void* block) { return is_aligned(block, kLine) && malloc_usable_size(block) % kLine == 0; }

TEST(Apart, BlocksOfListedSitesOwnTheirLines) {
  if (!is_apart()) return;
  for (const std::size_t bytes : kSizes) {
    if (bytes > 262144) continue;
    const auto check = [bytes](void* block, std::size_t alignment, const char* what) {
      ASSERT_NE(block, nullptr) << what << bytes;
      EXPECT_TRUE(owns_its_lines(block)) << what << bytes;
      EXPECT_TRUE(is_aligned(block, alignment)) << what << bytes;
      EXPECT_GE(malloc_usable_size(block), bytes) << what;
      EXPECT_TRUE(bytes > 16384 || malloc_usable_size(block) >= 2 * kLine) << what << bytes;
      fill(block, malloc_usable_size(block), 3);
      EXPECT_TRUE(is_filled(block, bytes, 3)) << what << bytes;
      free(block);
    };
    check(listed_malloc(bytes), 64, "malloc");
    check(listed_realloc(nullptr, bytes), 64, "realloc");
    check(listed_new(bytes), 64, "new");
    check(listed_nothrow(bytes), 64, "new, nothrow");
    for (const std::size_t alignment : {8, 16, 64, 128, 4096}) {
      check(listed_aligned(alignment, bytes), alignment, "aligned_alloc");
      check(listed_posix(alignment, bytes), alignment, "posix_memalign");
    }
    auto* const zeroed = static_cast<const char*>(listed_calloc(bytes));
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(zeroed[i], 0) << bytes;
    check(const_cast<char*>(zeroed), 64, "calloc");
  }
  EXPECT_EQ(loam_malloc_verify(), nullptr);
}

TEST(Apart, OtherBlocksLieAsBefore) {
  if (!is_apart()) return;
  std::vector<char*> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(static_cast<char*>(::malloc(opaque(std::size_t{8}))));
  int neighbours = 0;
  for (std::size_t i = 1; i < blocks.size(); ++i) neighbours += blocks[i] == blocks[i - 1] + 16;
  EXPECT_GT(neighbours, 32) << "8-byte blocks lie 16 bytes apart";
  for (char* block : blocks) {
    EXPECT_EQ(malloc_usable_size(block), 16u);
    free_sized(block, 8);
  }
  EXPECT_EQ(loam_malloc_verify(), nullptr);
}

TEST(Apart, ASizedFreeTakesTheSizeThatWasAskedFor) {
  if (!is_apart()) return;
  for (const std::size_t bytes : kSizes) {
    ::operator delete(listed_new(bytes), bytes);
    free_sized(listed_malloc(bytes), bytes);
    ::operator delete(::operator new(opaque(bytes)), bytes);
  }
  EXPECT_EXIT(::operator delete(listed_new(8), opaque(std::size_t{300})), testing::KilledBySignal(SIGABRT),
              "free with a wrong size");
  EXPECT_EQ(loam_malloc_verify(), nullptr);
}

TEST(Apart, AResizedBlockStaysApart) {
  if (!is_apart()) return;
  for (const std::size_t first : {1, 8, 100, 1000, 9000})
    for (const std::size_t then : {1, 8, 100, 200, 1000, 3000, 9000, 16384}) {
      void* block = listed_malloc(first);
      fill(block, first, 5);
      block = ::realloc(block, opaque(then));  // not at a listed site
      EXPECT_TRUE(owns_its_lines(block)) << first << " " << then;
      EXPECT_GE(malloc_usable_size(block), 2 * kLine) << first << " " << then;
      EXPECT_GE(malloc_usable_size(block), then);
      EXPECT_TRUE(is_filled(block, std::min(first, then), 5)) << first << " " << then;
      free(block);
      // Also in its place a plain block is not: the call that resizes it last is listed.
      void* plain = ::malloc(opaque(first));
      fill(plain, first, 6);
      plain = listed_realloc(plain, then);
      EXPECT_TRUE(owns_its_lines(plain)) << first << " " << then;
      EXPECT_TRUE(is_filled(plain, std::min(first, then), 6)) << first << " " << then;
      free(plain);
    }
  EXPECT_EQ(listed_realloc(listed_malloc(8), 0), nullptr);
  EXPECT_EQ(loam_malloc_verify(), nullptr);
}

TEST(Apart, OtherThreadsFreeSuchBlocksAndEnd) {
  if (!is_apart()) return;
  for (int round = 0; round < 20; ++round) {
    std::vector<void*> blocks(500);
    std::thread([&] {
      for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = i % 2 == 0 ? listed_malloc(24) : ::malloc(24);
    }).join();
    std::thread([&] {
      for (void* block : blocks) free(block);
    }).join();
  }
  EXPECT_LT(kept_of_32_mib(100, listed_malloc, [](void* block, std::size_t) { free(block); }), kKeptMax);
  EXPECT_EQ(loam_malloc_verify(), nullptr);
}

TEST(Apart, FailuresAreAsBefore) {
  if (!is_apart()) return;
  errno = 0;
  EXPECT_EQ(listed_malloc(kBytesMax), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  errno = 0;
  EXPECT_EQ(::calloc(opaque(kBytesMax), 4), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(listed_nothrow(kBytesMax), nullptr);
  EXPECT_THROW(listed_new(kBytesMax), std::bad_alloc);
  EXPECT_EQ(listed_posix(3, 8), nullptr);
  void* const block = listed_malloc(8);
  EXPECT_EQ(listed_realloc(block, kBytesMax), nullptr);
  errno = 7;
  free(block);
  free(listed_malloc(8));
  EXPECT_EQ(errno, 7);
}

TEST(Apart, SitesThatAreNeverReachedAreNamed) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "sites";
  const std::string nothing = "LOAM_MALLOC_APART=" + file.string() + " " + self() + " --gtest_filter=-*";
  const std::string site = "site " + frames(__start_apart_listed, __stop_apart_listed).front() + " # made at a.c:3";
  std::ofstream(file) << head_of_file() << "program " << self() << "\n" << site << "\n";
  EXPECT_EQ(run(nothing).err,
            "loam malloc: LOAM_MALLOC_APART: 1 of 1 sites were never reached:\n  " + site + " in " + self() + "\n");
  // Of another program nobody expects that it comes there.
  std::ofstream(file) << head_of_file() << "program /bin/other\n" << site << "\n";
  EXPECT_EQ(run(nothing).err, "");
}

TEST(Apart, AStackTellsCallersOfAWrapperApart) {
  std::string text = head_of_file();
  const auto inner = frames(__start_apart_inner, __stop_apart_inner);
  const auto outer = frames(__start_apart_outer, __stop_apart_outer);
  int count = 0;
  for (const std::string& in : inner)
    for (const std::string& out : outer)
      if (++count <= 512) text += "site " + in + " " + out + "\n";
  ASSERT_LE(count, 512) << "the functions are too long for this way to list them";
  if (!is_apart(text)) return;
  void *const apart = listed_caller(8), *const plain = other_caller(8);
  EXPECT_EQ(malloc_usable_size(apart), 2 * kLine);
  EXPECT_EQ(malloc_usable_size(plain), 16u);
  free(apart);
  free(plain);
}

}  // namespace
}  // namespace loam::tests
