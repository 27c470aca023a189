#include "runtime/platform/pages.hpp"

#include "tests/harness/child.hpp"
#include "tests/harness/host_pages.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include <sys/resource.h>
#include <unistd.h>

namespace loam::platform {
namespace {

const std::size_t kPage = page_bytes();

TEST(PageBytes, IsThatOfTheKernel) {
  EXPECT_EQ(kPage, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(kPage % kPageBytes, 0u);
  EXPECT_LE(kPage, kPageBytesMax);
}

TEST(AddressEnd, TheStackAndMappingsLieBelowIt) {
  int local = 0;
  const auto stack = reinterpret_cast<std::uintptr_t>(&local);
  EXPECT_LT(stack, address_end());
  EXPECT_LE(address_end() - 1, ~std::uintptr_t{0} >> (64 - kAddressBits));
  void* const mapped = map_lazy(kPage);
  EXPECT_LT(reinterpret_cast<std::uintptr_t>(mapped), std::uintptr_t{1} << kAddressBits);
  unmap(mapped, kPage);
}

TEST(MapLazy, IsZeroedWritableAndRoundedUpToPages) {
  auto* const start = static_cast<unsigned char*>(map_lazy(kPage + 1));
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(start) % kPage, 0u);
  for (std::size_t i = 0; i < 2 * kPage; ++i) ASSERT_EQ(start[i], 0);
  std::memset(start, 0xab, 2 * kPage);
  EXPECT_EQ(start[2 * kPage - 1], 0xab);
  unmap(start, kPage + 1);
}

TEST(MapLazy, ARefusedSizeIsNull) { EXPECT_EQ(map_lazy(std::size_t{1} << 62), nullptr); }

TEST(MapLazy, AddressSpaceLimitIsNullAndOrDieNamesWhatAndHowMuch) {
#ifdef LOAM_INSTRUMENTED
  GTEST_SKIP() << "the sanitizer's own range is over any limit";
#endif
  tests::in_child([] {
    rlimit limit{1ULL << 30, 1ULL << 30};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    if (address_space_limit() != limit.rlim_cur) GTEST_SKIP() << "the emulator takes no limit";
    EXPECT_EQ(map_lazy(std::size_t{1} << 31), nullptr);
    EXPECT_NE(map_lazy(std::size_t{1} << 20), nullptr);
  });
  EXPECT_DEATH(map_lazy_or_die(std::size_t{1} << 62, "the test's log"),
               "the test's log: the system refused 4611686018427387904 bytes.*ulimit -v");
}

TEST(FailMapAfter, RefusesExactlyTheNthRequestOnce) {
  for (int n = 0; n < 4; ++n) {
    fail_map_after(n);
    for (int request = 0; request < 8; ++request) {
      void* const start = map_lazy(kPage);
      EXPECT_EQ(start == nullptr, request == n) << "n=" << n << " request=" << request;
      if (start != nullptr) unmap(start, kPage);
    }
  }
  fail_map_after(-1);
}

TEST(ResidentBytes, CountsTouchedPagesOfItsRangeOnly) {
  constexpr std::size_t kPages = 64;
  auto* const start = static_cast<unsigned char*>(map_lazy(kPages * kPage, {.huge_pages = false}));
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(resident_bytes(start, kPages * kPage), 0u);
  for (std::size_t page = 0; page < 16; ++page) start[page * kPage] = 1;
  EXPECT_EQ(resident_bytes(start, kPages * kPage), 16 * tests::backed_by_a_touch());
  unmap(start, kPages * kPage);
}

TEST(MovePages, TheMemoryLiesThereAndTheOldAddressesReadAsZero) {
  const std::size_t kBytes = 16 * kPage;
  constexpr MapOptions kSmall{.huge_pages = false};
  auto* const from = static_cast<unsigned char*>(map_lazy(kBytes, kSmall));
  auto* const to = static_cast<unsigned char*>(map_lazy(2 * kBytes, kSmall));
  std::memset(from, 7, kBytes);
  to[0] = 9;
  to[kBytes] = 9;
  if (!move_pages(from, kBytes, to)) GTEST_SKIP() << "this kernel moves no pages";
  for (std::size_t at = 0; at < kBytes; ++at) ASSERT_EQ(to[at], 7) << at;
  EXPECT_EQ(to[kBytes], 9);
  EXPECT_EQ(resident_bytes(from, kBytes), 0u);
  EXPECT_EQ(from[0], 0);
  from[0] = 1;
  EXPECT_EQ(to[0], 7);
  unmap(from, kBytes);
  unmap(to, 2 * kBytes);
}

TEST(ResidentBytes, AMappingNextToItDoesNotCount) {
  // The kernel joins neighbouring mappings of the same kind into one entry of its account.
  const std::size_t kBytes = 64 * kPage;
  constexpr MapOptions kSparse{.huge_pages = false, .core_dump = false};
  auto* const records = static_cast<unsigned char*>(map_lazy(kBytes, kSparse));
  auto* const log = static_cast<unsigned char*>(map_lazy(kBytes, kSparse));
  auto* const other = static_cast<unsigned char*>(map_lazy(kBytes, kSparse));
  for (auto* range : {log, other}) std::memset(range, 1, kBytes);
  EXPECT_EQ(resident_bytes(records, kBytes), 0u);
  records[0] = 1;
  EXPECT_EQ(resident_bytes(records, kBytes), tests::backed_by_a_touch());
  EXPECT_EQ(resident_bytes(log, kBytes), kBytes);
  for (auto* range : {records, log, other}) unmap(range, kBytes);
}

// Pages that are backed, in turn with some that are not, from any place in the first to any in the last.
TEST(Zero, ItsBytesAreZeroAndNoOthersAndUntouchedPagesStayUnbacked) {
  constexpr std::size_t kPages = 1200;
  for (const std::size_t every : {1, 2, 3, 40})
    for (const std::size_t from : {std::size_t{0}, std::size_t{24}, kPage - 8})
      for (const std::size_t bytes : {std::size_t{8}, 3 * kPage, (kPages - 2) * kPage + 16}) {
        auto* const start = static_cast<unsigned char*>(map_lazy(kPages * kPage, {.huge_pages = false}));
        for (std::size_t page = 0; page < kPages; page += every) std::memset(start + page * kPage, 7, kPage);
        const std::size_t backed = resident_bytes(start, kPages * kPage);
        zero(start + from, bytes);
        if (every == 40 && !tests::answers_are_of_host_pages()) {
          EXPECT_LE(resident_bytes(start, kPages * kPage), backed + 8 * kPage);
        }
        for (std::size_t at = 0; at < kPages * kPage; at += kPage / 512) {
          const bool is_inside = at >= from && at < from + bytes, had = at / kPage % every == 0;
          ASSERT_EQ(start[at], !is_inside && had ? 7 : 0) << every << " " << from << " " << bytes << " " << at;
        }
        unmap(start, kPages * kPage);
      }
}

TEST(Purge, GivesBackWholePagesAndKeepsTheRest) {
  constexpr std::size_t kPages = 8;
  auto* const start = static_cast<unsigned char*>(map_lazy(kPages * kPage, {.huge_pages = false}));
  std::memset(start, 7, kPages * kPage);
  purge(start + 100, 3 * kPage);  // only pages 1 and 2 lie inside as a whole
  EXPECT_EQ(start[100], 7);
  EXPECT_EQ(start[kPage], 0);
  EXPECT_EQ(start[3 * kPage - 1], 0);
  EXPECT_EQ(start[3 * kPage], 7);
  purge(start + 1, 10);  // no whole page: nothing happens
  EXPECT_EQ(start[1], 7);
  unmap(start, kPages * kPage);
}

}  // namespace
}  // namespace loam::platform
