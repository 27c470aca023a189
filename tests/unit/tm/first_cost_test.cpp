// What the first transaction of a process costs, and the first thread that ends: pages and system calls, counted.
#include "include/loam/tm.h"
#include "runtime/platform/pages.hpp"
#include "runtime/tm/records/stripes.hpp"
#include "runtime/tm/runtime.hpp"
#include "tests/harness/c_bodies.hpp"
#include "tests/harness/instrumented.hpp"
#include "tests/harness/system_calls.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <thread>

#include <linux/membarrier.h>
#include <sys/resource.h>
#include <sys/syscall.h>

namespace loam::tm {
namespace {

struct FirstCost : testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(All, FirstCost, testing::ValuesIn(Algorithms::kNames), tests::test_name_of);

alignas(64) std::uint64_t x = 0;

void use() {
  tests::atomically([](loam_tx* tx) {
    void* const block = loam_tx_malloc(tx, 64);
    loam_tx_write_u64(tx, &x, loam_tx_read_u64(tx, &x) + 1);
    loam_tx_free(tx, block);
  });
}

long page_faults() {
  rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_minflt : -1;
}

TEST_P(FirstCost, TouchesFewPages) {
  if (tests::kInstrumented) GTEST_SKIP() << "the sanitizer has pages of its own";
  tests::in_c(GetParam(), [algorithm = GetParam()] {
    bool has_records = false;
    Algorithms::with<false>(algorithm, [&]<class A>() { has_records = uses_records<A>() && A::kDescription.overlaps; });
    const long before = page_faults();
    use();
    const long faults = page_faults() - before;
    EXPECT_LE(faults, 100) << "a table of the default size has 2048 pages";
    EXPECT_EQ(shared.map.base != nullptr, has_records);
    // A page, or a huge one where the system makes all pages huge.
    constexpr std::size_t kHugeBytes = std::size_t{2} << 20;
    if (has_records) {
      EXPECT_LE(shared.map.resident_bytes(), kHugeBytes);
    }
    if (stripes::write_locks.base != nullptr) {
      EXPECT_LE(platform::resident_bytes(stripes::write_locks.base, shared.map.bytes), kHugeBytes);
    }
  });
}

// The second request for pages would be refused: it is still to come after the transaction.
TEST_P(FirstCost, OfAThreadIsOneMapping) {
  if (GetParam() == "two-phase") GTEST_SKIP() << "maps the read indicators of a thread too";
  if (GetParam() == "sequential") GTEST_SKIP() << "has one thread";
  tests::in_c(GetParam(), [] {
    const auto add = [] {
      tests::atomically([](loam_tx* tx) { loam_tx_write_u64(tx, &x, loam_tx_read_u64(tx, &x) + 1); });
    };
    add();
    std::thread([&] {
      platform::fail_map_after(1);
      add();
      EXPECT_EQ(platform::map_lazy(platform::kPageBytes), nullptr);
      platform::fail_map_after(-1);
    }).join();
  });
}

TEST(FirstCosts, OfAThreadThatEndsRegisterNothing) {
#ifdef LOAM_TSAN
  GTEST_SKIP() << "its barrier does not use the kernel";
#endif
  tests::in_child([] {
    if (!tests::forbid(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
      GTEST_SKIP() << "this system takes no filter of system calls";
    std::thread(use).join();
    std::thread(use).join();
    loam_quiesce();
  });
}

TEST(FirstCosts, AThreadThatLeavesNothingInterruptsNobody) {
#ifdef LOAM_TSAN
  GTEST_SKIP() << "its barrier does not use the kernel";
#endif
  tests::in_child([] {
    if (!tests::forbid(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED))
      GTEST_SKIP() << "this system takes no filter of system calls";
    for (int i = 0; i < 2; ++i)
      std::thread([] { tests::atomically([](loam_tx* tx) { loam_tx_write_u64(tx, &x, 1); }); }).join();
  });
}

}  // namespace
}  // namespace loam::tm
