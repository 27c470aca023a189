// Places of threads among the bytes that show reads: which threads share a group, and who has none.
#include "runtime/tm/records/read_bytes.hpp"
#include "runtime/platform/pages.hpp"
#include "runtime/tm/runtime.hpp"
#include "tests/harness/child.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace loam::tm {
namespace {

using read_bytes::groups, read_bytes::kGroups, read_bytes::kPlaces, read_bytes::Place, read_bytes::take_place;

template <class Body>
void with_records(Body&& body) {
  tests::in_child([&] {
    configure({.records_log2 = kRecordsLog2Min});
    touch_records();
    body();
  });
}

TEST(ReadBytesTest, ThreadsOfOneDieShareAGroupAndThoseOfOthersDoNot) {
  with_records([] {
    const Place first = take_place(0, 3), near = take_place(7, 7), far = take_place(2, 8), back = take_place(1, 0);
    EXPECT_EQ(near.group, first.group);
    EXPECT_EQ(back.group, first.group);
    EXPECT_NE(far.group, first.group);
    EXPECT_EQ(first.index, 0u);
    EXPECT_EQ(near.index, 1u);
    EXPECT_EQ(back.index, 2u);
    EXPECT_EQ(groups.of(first.group).places(), 3u);
    EXPECT_EQ(groups.slots[near.group][near.index].load(), 7u + 1);
    EXPECT_EQ(&near.of(0), &first.of(0) + 1);
    EXPECT_EQ(&first.of(1), &first.of(0) + kPlaces) << "stripes are neighbours, groups are not";
  });
}

TEST(ReadBytesTest, ASlotKeepsItsPlaceWhereverItsNextThreadRuns) {
  with_records([] {
    const Place first = take_place(5, 0), again = take_place(5, 64);
    EXPECT_EQ(again.bytes, first.bytes);
    EXPECT_EQ(groups.of(0).places(), 1u);
    EXPECT_FALSE(groups.of(1).is_there());
  });
}

TEST(ReadBytesTest, TheNinthThreadOfADieBeginsAnotherGroup) {
  with_records([] {
    for (unsigned slot = 0; slot < kPlaces; ++slot) EXPECT_EQ(take_place(slot, 0).group, 0u);
    EXPECT_EQ(take_place(kPlaces, 0).group, 1u);
    EXPECT_EQ(take_place(kPlaces + 1, 0).group, 1u);
  });
}

TEST(ReadBytesTest, ThreadsBehindTheLastGroupHaveNoPlaceAndSaySo) {
  with_records([] {
    read_bytes::limit(2, 2);
    take_place(0, 0);
    take_place(1, 8);
    EXPECT_EQ(take_place(2, 16).group, 0u) << "no group of its own die: any with room";
    EXPECT_EQ(take_place(3, 16).group, 1u);
    EXPECT_FALSE(groups.of(2).is_nobodys());
    const Place none = take_place(4, 16);
    EXPECT_FALSE(none.is_there());
    EXPECT_TRUE(groups.of(2).is_nobodys());
    EXPECT_EQ(take_place(6, 0).bytes, none.bytes) << "the same zeroes";
    EXPECT_EQ(none.of(shared.map.capacity() - 1), 0u);
  });
}

TEST(ReadBytesTest, ThreadsThatComeTogetherHavePlacesOfTheirOwn) {
  with_records([] {
    constexpr unsigned kThreads = 24;
    std::vector<Place> places(kThreads);
    std::vector<std::thread> threads;
    for (unsigned slot = 0; slot < kThreads; ++slot)
      threads.emplace_back([&places, slot] { places[slot] = take_place(slot, slot % 2 * 8); });
    for (auto& thread : threads) thread.join();
    for (unsigned slot = 0; slot < kThreads; ++slot) {
      EXPECT_EQ(groups.slots[places[slot].group][places[slot].index].load(), slot + 1);
      EXPECT_EQ(groups.of(places[slot].group).die(), slot % 2);
    }
    EXPECT_LE(groups.of(kGroups).places(), 0u);
  });
}

TEST(ReadBytesTest, BytesAreBackedAsTheyAreTouched) {
  tests::in_child([] {
    configure({});
    {
      std::thread mapping([] { touch_records(); });
      mapping.join();
    }
    const Place place = take_place(0, 0);
    const std::size_t bytes = shared.map.capacity() * kPlaces;
    EXPECT_EQ(bytes, std::size_t{8} << 20);
    place.of(5).store(1);
    EXPECT_LE(platform::resident_bytes(groups.of(0).bytes(), bytes), std::size_t{2} << 20) << "a page, or a huge one";
  });
}

}  // namespace
}  // namespace loam::tm
