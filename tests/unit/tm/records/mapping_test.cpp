// Which record guards which address, what happens where the system refuses the range, and misuse of configure().
#include "runtime/platform/pages.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include <sys/resource.h>

namespace loam::tm {
namespace {

#if defined(LOAM_TSAN)
constexpr std::string_view kWidest = "shadow-window";  // the thread sanitizer keeps most addresses for itself
#else
constexpr std::string_view kWidest = "shadow-full";
#endif

template <class Pointer = const void*>
Pointer at(std::uintptr_t address) {
  return reinterpret_cast<Pointer>(address);
}

template <class Driver>
void small_run() {
  alignas(64) static std::uint64_t words[16] = {};
  std::thread threads[2];
  for (auto& thread : threads)
    thread = std::thread([] {
      for (int i = 0; i < 300; ++i)
        Driver::update([&](auto& tx) {
          for (auto& word : words) tx.write(word, tx.read(word) + 1);
          tx.destroy(tx.template create<std::uint64_t>(1u));
        });
    });
  for (auto& thread : threads) thread.join();
  for (const auto& word : words) EXPECT_EQ(word, 600u);
}

TEST(MappingTest, ATableAliasesModuloShiftAndSize) {
  tests::in_child([] {
    for (unsigned shift : {3u, 5u, 12u})
      for (unsigned log2 : {10u, 20u}) {
        const RecordMap map = map_records({.shift = shift, .records_log2 = log2});
        EXPECT_EQ(map.kind, "table");
        EXPECT_EQ(map.bytes, sizeof(Orec) << log2);
        const std::uintptr_t a = 0x7f1234567000, stripe = 1ull << shift, period = stripe << log2;
        EXPECT_EQ(&map.record(at(a)), &map.record(at(a + stripe - 1)));
        EXPECT_EQ(&map.record(at(a)) + 1, &map.record(at(a + stripe)));
        EXPECT_EQ(&map.record(at(a)), &map.record(at(a + period)));
        EXPECT_EQ(map.stripe(at(a)) + 1, map.stripe(at(a + stripe)));
        EXPECT_EQ(map.resident_bytes(), 0u);
        map.touch();
        EXPECT_GE(map.resident_bytes(), map.bytes);
        platform::unmap(map.base, map.bytes);
      }
  });
}

TEST(MappingTest, TheHashKeepsNeighboursAndPartsWhatLiesAPeriodApart) {
  tests::in_child([] {
    for (unsigned shift : {3u, 5u, 12u})
      for (unsigned log2 : {10u, 20u, 26u}) {
        const RecordMap map = map_records({.mapping = Mapping::hash, .shift = shift, .records_log2 = log2});
        EXPECT_EQ(map.kind, "hash");
        const std::uintptr_t a = 0x7f1234567000, stripe = 1ull << shift, period = stripe << log2;
        const auto index = [&](std::uintptr_t address) { return &map.record(at(address)) - map.base; };
        const auto records = std::ptrdiff_t{1} << log2;
        std::ptrdiff_t last = index(a);
        for (std::uintptr_t next = a; next < a + 100 * stripe; next += 8) {
          const std::ptrdiff_t now = index(next), step = (now - last + records) % records;
          EXPECT_LE(step, shift == 3 ? 2 : 1) << "from one word to the next, where a stripe is a little under 2^shift";
          EXPECT_EQ(now, static_cast<std::ptrdiff_t>(map.stripe(at(next)) % static_cast<std::uint64_t>(records)));
          for (unsigned byte = 1; byte < 8; ++byte) EXPECT_EQ(index(next + byte), now) << "a word has one record";
          last = now;
        }
        // The same place of 64 arenas: no two of them near each other.
        std::vector<std::ptrdiff_t> places;
        for (unsigned arena = 0; arena < 64; ++arena) places.push_back(index(a + arena * period));
        std::sort(places.begin(), places.end());
        for (unsigned i = 1; i < 64; ++i) EXPECT_GE(places[i] - places[i - 1], records / 256) << i;
        platform::unmap(map.base, map.bytes);
      }
  });
}

TEST(MappingTest, WhoKnowsTheHashRunsUnderAnyMapping) {
  for (const Mapping mapping : {Mapping::table, Mapping::hash, Mapping::shadow})
    tests::in_child([mapping] {
      configure({.mapping = mapping, .records_log2 = 10});
      small_run<Driver<EtlWbHash<false>>>();
    });
}

TEST(MappingTest, ShadowRecordsGiveEachGranuleItsOwn) {
  tests::in_child([] {
    const RecordMap map = map_records({.mapping = Mapping::shadow});
    ASSERT_EQ(map.kind, kWidest);
    EXPECT_EQ(map.shift, 4u);
    EXPECT_EQ(map.resident_bytes(), 0u);
    const std::uintptr_t a = 0x7f1234567000;
    EXPECT_EQ(&map.record(at(a)), &map.record(at(a + 15)));
    EXPECT_EQ(&map.record(at(a)) + 1, &map.record(at(a + 16)));
    for (unsigned bit = 4; bit < (map.kind == "shadow-full" ? 47u : 40u); ++bit)
      EXPECT_NE(&map.record(at(a)), &map.record(at(a ^ (1ull << bit)))) << bit;
    map.record(at(a)).store(1);
    map.record(at(0)).store(1);
    map.record(at((1ull << 47) - 1)).store(1);
    EXPECT_LE(map.resident_bytes(), 3 * platform::page_bytes());
    EXPECT_GE(map.resident_bytes(), 2 * platform::page_bytes());
  });
}

TEST(MappingTest, ARefusedRangeFallsBackToTheWindowAndSaysSo) {
  if (kWidest != "shadow-full") GTEST_SKIP() << "the full range is refused here anyway";
  tests::in_child([] {
    platform::fail_map_after(0);
    configure({.mapping = Mapping::shadow});
    touch_records();
    EXPECT_EQ(shared.map.kind, "shadow-window");
    EXPECT_EQ(shared.map.bytes, (std::size_t{1} << 36) * 8);
    small_run<Driver<EtlWb<false>>>();
  });
}

TEST(MappingTest, UnderAnAddressSpaceLimitItIsTheTable) {
#ifdef LOAM_INSTRUMENTED
  GTEST_SKIP() << "the sanitizer's own range is over any limit";
#endif
  tests::in_child([] {
    rlimit limit{12ULL << 30, 12ULL << 30};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    configure({.mapping = Mapping::shadow});
    touch_records();
    EXPECT_EQ(shared.map.kind, "table");
    small_run<Driver<EtlWb<false>>>();
  });
}

TEST(MappingTest, ConfigureMayBeRepeatedBeforeTheFirstTransaction) {
  tests::in_child([] {
    configure({.mapping = Mapping::shadow});
    touch_records();
    configure({.records_log2 = 12, .blame = true});
    touch_records();
    EXPECT_EQ(shared.map.kind, "table");
    EXPECT_EQ(shared.map.mask, (1u << 12) - 1);
    configure({.shift = 6, .records_log2 = 10});
    EXPECT_EQ(shared.map.base, nullptr);
    small_run<Driver<EtlWb<false>>>();
    EXPECT_EQ(shared.map.shift, 6u);
  });
}

TEST(MappingTest, WithoutConfigureTheDefaultsHold) {
  tests::in_child([] {
    small_run<Driver<EtlWb<false>>>();
    EXPECT_EQ(shared.map.kind, "table");
    EXPECT_EQ(shared.map.shift, 5u);
    EXPECT_EQ(shared.map.mask, (1u << 20) - 1);
  });
}

TEST(MappingTest, TheHashAppliesWhereThereAreNoRecords) {
  tests::in_child([] {
    configure({.mapping = Mapping::hash});
    small_run<Driver<Norec<false>>>();
  });
}

// ---- misuse ends the program with the value and its limit

struct ConfigureDeathTest : testing::Test {
  void SetUp() override { testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

TEST_F(ConfigureDeathTest, ValuesOutOfRange) {
  EXPECT_DEATH(configure({.shift = 2}), "shift=2: must be 3 to 12");
  EXPECT_DEATH(configure({.shift = 13}), "shift=13: must be 3 to 12");
  EXPECT_DEATH(configure({.records_log2 = 9}), "records_log2=9: must be 10 to 26");
  EXPECT_DEATH(configure({.records_log2 = 27}), "records_log2=27: must be 10 to 26");
}

TEST_F(ConfigureDeathTest, AnAlgorithmThatDoesNotKnowTheHash) {
  EXPECT_DEATH(
      {
        configure({.mapping = Mapping::hash});
        const auto nothing = [](auto&) {};
        Driver<EtlWb<false>>::update(nothing);
      },
      "mapping=hash: etl-wb finds records by shift and mask; take mapping=table");
}

TEST_F(ConfigureDeathTest, AfterTheFirstTransaction) {
  EXPECT_DEATH(
      {
        atomically([](auto&) {});
        configure({});
      },
      "configure\\(\\) after the first transaction");
}

TEST_F(ConfigureDeathTest, ThreadExitAndQuiesceInsideATransaction) {
  EXPECT_DEATH(atomically([](auto&) { thread_exit(); }), "inside a transaction");
  EXPECT_DEATH(atomically([](auto&) { quiesce(); }), "inside a transaction|inside a read section");
}

}  // namespace
}  // namespace loam::tm
