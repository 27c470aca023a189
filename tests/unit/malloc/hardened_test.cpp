// What a hardened process finds in the sized forms of free and delete. Each test runs once more in a process that is
// hardened from its start.
#include "tests/unit/malloc/blocks.hpp"
#include "tests/unit/support/process.hpp"

#include "include/loam/malloc.h"

#include <csignal>
#include <cstdlib>
#include <new>
#include <string>

extern "C" {
void free_sized(void*, std::size_t);
void free_aligned_sized(void*, std::size_t, std::size_t);
}

namespace loam::tests {
namespace {

// Whether this is the hardened process. In the other one, runs the current test in it.
bool is_hardened() {
  if (std::getenv("LOAM_MALLOC_HARDENED") != nullptr) return true;
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const Finished done =
      run("LOAM_MALLOC_HARDENED=1 " + self + " --gtest_filter=" + test.test_suite_name() + "." + test.name());
  EXPECT_EQ(done.status, 0) << done.out << done.err;
  EXPECT_NE(done.out.find("[  PASSED  ] 1 test"), std::string::npos) << done.out;
  return false;
}

constexpr const char* kWrongSize = "loam malloc: free with a wrong size";

// On either side of the size, and what a rounded or halved size would be.
std::vector<std::size_t> wrong_sizes(std::size_t bytes) {
  std::vector<std::size_t> all = {bytes + 1, bytes + 16, 2 * bytes + 2, ~std::size_t{0}};
  if (bytes > 0) all.insert(all.end(), {0, bytes - 1});
  if (bytes > 1) all.push_back(bytes / 2);
  return all;
}

TEST(Hardened, FreeSizedTakesWhatWasAskedForLast) {
  if (!is_hardened()) return;
  for (const std::size_t bytes : kSizes) {
    free_sized(malloc(opaque(bytes)), bytes);
    free_sized(calloc(1, opaque(bytes)), bytes);
    for (const std::size_t from : {std::size_t{1}, bytes / 2 + 1, bytes + 1, 3 * bytes + 1})
      if (bytes > 0) free_sized(realloc(malloc(opaque(from)), opaque(bytes)), bytes);
    for (const std::size_t alignment : {std::size_t{1}, std::size_t{16}, std::size_t{64}, std::size_t{4096}}) {
      free_aligned_sized(aligned_alloc(alignment, opaque(bytes)), alignment, bytes);
      const std::align_val_t as_type{alignment};
      ::operator delete(::operator new(opaque(bytes), as_type), bytes, as_type);
      ::operator delete[](::operator new[](opaque(bytes), as_type), bytes, as_type);
    }
  }
  free_sized(nullptr, 100);
  free_aligned_sized(nullptr, 64, 100);
  EXPECT_EQ(loam_malloc_verify(), nullptr);
}

TEST(Hardened, FreeSizedFindsEveryOtherSize) {
  if (!is_hardened()) return;
  for (const std::size_t bytes : {0, 1, 16, 100, 1000, 40000, 300000})
    for (const std::size_t wrong : wrong_sizes(bytes)) {
      void* const block = malloc(opaque(bytes));
      EXPECT_DEATH(free_sized(block, opaque(wrong)), kWrongSize) << bytes << " freed as " << wrong;
      void* const shrunk = realloc(malloc(opaque(2 * bytes + 100)), opaque(bytes + 50));
      EXPECT_DEATH(free_sized(shrunk, opaque(2 * bytes + 100)), kWrongSize) << "the size before it was reallocated";
    }
}

TEST(Hardened, FreeAlignedSizedFindsEveryOtherSize) {
  if (!is_hardened()) return;
  for (const std::size_t alignment : {16, 64, 4096})
    for (const std::size_t bytes : {0, 1, 100, 5000, 300000})
      for (const std::size_t wrong : wrong_sizes(bytes)) {
        void* const block = aligned_alloc(alignment, opaque(bytes));
        EXPECT_DEATH(free_aligned_sized(block, alignment, opaque(wrong)), kWrongSize) << bytes << " as " << wrong;
        EXPECT_DEATH(::operator delete(block, opaque(wrong), std::align_val_t{alignment}), kWrongSize);
      }
}

TEST(Hardened, AnAlignmentThatTheBlockDoesNotHaveIsFound) {
  if (!is_hardened()) return;
  for (const std::size_t bytes : {100, 5000, 300000}) {
    void* const block = aligned_alloc(64, opaque(bytes));
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    const std::uintptr_t lowest = address & (~address + 1);
    free_aligned_sized(aligned_alloc(64, opaque(bytes)), 64, bytes);
    for (const std::uintptr_t alignment : {2 * lowest, 4 * lowest, std::uintptr_t{1} << 62, std::uintptr_t{0}}) {
      EXPECT_DEATH(free_aligned_sized(block, alignment, bytes), kWrongSize) << alignment;
      EXPECT_DEATH(::operator delete(block, bytes, std::align_val_t{alignment}), kWrongSize);
    }
    free_aligned_sized(block, lowest, bytes);  // more than was asked for, but it has it
  }
}

TEST(Hardened, SizedDeleteFindsEveryOtherSize) {
  if (!is_hardened()) return;
  for (const std::size_t bytes : {1, 100, 5000, 300000})
    for (const std::size_t wrong : wrong_sizes(bytes)) {
      void* const block = ::operator new(opaque(bytes));
      EXPECT_DEATH(::operator delete(block, opaque(wrong)), kWrongSize) << bytes << " deleted as " << wrong;
      EXPECT_DEATH(::operator delete[](block, opaque(wrong)), kWrongSize);
    }
}

// A freed block waits before it is used again. Blocks that wait at the end of the process are checked then.
TEST(Hardened, AWriteToAFreedBlockIsFoundAtExit) {
  if (!is_hardened()) return;
  auto* const block = static_cast<char*>(malloc(opaque<std::size_t>(100)));
  const auto write_and_exit = [&](bool write) {
    free(block);
    if (write) *const_cast<volatile char*>(opaque(block) + 50) = 1;
    std::exit(0);
  };
  EXPECT_EXIT(write_and_exit(true), testing::KilledBySignal(SIGABRT), "loam malloc: write to a freed block");
  EXPECT_EXIT(write_and_exit(false), testing::ExitedWithCode(0), "");
  free(block);
}

// Checks that take time are not made unless asked for.
TEST(NotHardened, FreeSizedBelievesTheSize) {
  if (std::getenv("LOAM_MALLOC_HARDENED") != nullptr) return;
  for (const std::size_t wrong : wrong_sizes(100)) free_sized(malloc(opaque<std::size_t>(100)), opaque(wrong));
  EXPECT_EQ(loam_malloc_verify(), nullptr);
}

}  // namespace
}  // namespace loam::tests
