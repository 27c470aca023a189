// Pages of long blocks that nobody has touched are not backed by memory, also where the block is zeroed or moved.
#include "runtime/heap/compositions/loam.hpp"
#include "tests/harness/heaps.hpp"
#include "tests/harness/host_pages.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <cstring>
#include <vector>

namespace loam::heap {
namespace {

using TestHeap = Heap<LoamComposition<tests::NoThreadsHook, tests::DyingFaults>>;

constexpr std::size_t kMiB = std::size_t{1} << 20;
const std::size_t kPage = platform::page_bytes();

// Whole pages within the block that memory is behind.
std::size_t backed_pages(const std::byte* block, std::size_t bytes) {
  const std::uintptr_t first = base::round_up(address_of(block), std::uintptr_t{kPage});
  const std::size_t pages = (address_of(block) + bytes - first) / kPage;
  std::vector<unsigned char> resident(pages);
  EXPECT_EQ(mincore(reinterpret_cast<void*>(first), pages * kPage, resident.data()), 0);
  std::size_t sum = 0;
  for (const unsigned char page : resident) sum += page & 1;
  return sum;
}

class UntouchedPages : public testing::Test {
 protected:
  void SetUp() override {
    if (tests::answers_are_of_host_pages()) GTEST_SKIP() << "the emulator tells of other pages than these";
  }
};

// The memory of a block of which an eighth was touched serves a zeroed one.
void expect_untouched(std::size_t bytes, std::size_t backed_max) {
  TestHeap::trim();
  std::byte* before;
  do {  // until the memory stays
    before = static_cast<std::byte*>(TestHeap::allocate(bytes));
    std::memset(before, 0xee, bytes / 8);
    TestHeap::deallocate(before);
  } while (TestHeap::statistics().dirty_bytes < bytes);
  auto* const block = static_cast<std::byte*>(TestHeap::allocate_zeroed(bytes));
  EXPECT_EQ(block, before) << "of " << bytes << " bytes: the test is about memory that serves again";
  EXPECT_LE(backed_pages(block, bytes), backed_max) << "of " << bytes << " bytes";
  EXPECT_TRUE(tests::holds(block, bytes, 0)) << "of " << bytes << " bytes";
  TestHeap::deallocate(block);
  EXPECT_EQ(tests::verified<TestHeap>(), "");
}

TEST_F(UntouchedPages, AZeroedBlockOfMiddleLengthHasThoseThatItsMemoryHad) {
  for (const std::size_t bytes : {200 * std::size_t{1024}, kMiB, 3 * kMiB})
    expect_untouched(bytes, bytes / 8 / kPage + 2);
}

TEST_F(UntouchedPages, ALongZeroedBlockHasNewPages) {
  for (const std::size_t bytes : {5 * kMiB, 40 * kMiB}) expect_untouched(bytes, 2);
}

// A block that cannot grow where it lies.
void expect_moved(std::size_t from, std::size_t to) {
  const std::size_t kTouched = 3 * kPage;
  TestHeap::trim();
  auto* const block = static_cast<std::byte*>(TestHeap::allocate(from));
  void* const neighbour = TestHeap::allocate(from);
  std::memset(block, 0xee, kTouched);
  auto* const moved = static_cast<std::byte*>(TestHeap::reallocate(block, to));
  EXPECT_NE(moved, block);
  EXPECT_GE(TestHeap::usable_bytes(moved), to);
  EXPECT_TRUE(TestHeap::is_block(moved));
  EXPECT_EQ(TestHeap::word_of(block), 0u);
  const std::size_t huge = from >= 4 * kMiB ? 2 * kMiB / kPage : 0;  // pages of the huge one that the first touch backs
  EXPECT_LE(backed_pages(moved, std::min(from, to)), huge + 2 * kTouched / kPage) << "from " << from << " to " << to;
  EXPECT_TRUE(tests::holds(moved, kTouched, 0xee));
  EXPECT_TRUE(tests::holds(moved + kTouched, std::min(from, to) - kTouched, 0));
  std::memset(moved, 0xdd, to);
  EXPECT_EQ(tests::verified<TestHeap>(), "");
  TestHeap::deallocate(moved);
  TestHeap::deallocate(neighbour);
  for (const std::size_t bytes : {from, to}) {
    auto* const again = static_cast<std::byte*>(TestHeap::allocate_zeroed(bytes));
    EXPECT_TRUE(tests::holds(again, bytes, 0)) << "from " << from << " to " << to;
    std::memset(again, 0xcc, bytes);
    TestHeap::deallocate(again);
  }
  EXPECT_EQ(tests::verified<TestHeap>(), "");
}

TEST_F(UntouchedPages, ABlockThatMovesTakesItsPagesAlong) {
  expect_moved(2 * kMiB, 3 * kMiB);
  expect_moved(3 * kMiB, 9 * kMiB);
  expect_moved(40 * kMiB, 5 * kMiB);
}

// What moving cuts up the kernel joins again when the blocks go.
TEST_F(UntouchedPages, MovedBlocksLeaveNoMappingsBehind) {
  const auto mappings = [] {
    std::FILE* const file = std::fopen("/proc/self/maps", "r");
    int lines = 0;
    for (int c; (c = std::fgetc(file)) != EOF;) lines += c == '\n' ? 1 : 0;
    std::fclose(file);
    return lines;
  };
  TestHeap::trim();
  const int before = mappings();
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < 30; ++i) {
    void* const block = TestHeap::allocate(2 * kMiB);
    blocks.push_back(TestHeap::allocate(kMiB));  // so that it cannot grow
    std::memset(block, 1, 2 * kMiB);
    blocks.push_back(TestHeap::reallocate(block, 3 * kMiB));
  }
  for (void* const block : blocks) TestHeap::deallocate(block);
  EXPECT_LE(mappings(), before + 10);
}

}  // namespace
}  // namespace loam::heap
