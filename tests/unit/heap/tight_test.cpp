// How much of a tight limit of addresses is left for spans, beside the metadata.
#include "runtime/heap/span_store.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace loam::heap {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20, kLimit = 12 * kMiB;

// Refuses what is beyond the limit, counting the guard page behind each mapping.
struct TightPages : SystemPages {
  static inline std::size_t left = ~std::size_t{0};

  static std::size_t with_guard(std::size_t bytes) {
    return base::round_up(bytes, platform::page_bytes()) + platform::page_bytes();
  }
  static Reservation area(std::size_t bytes_max) noexcept {
    std::size_t bytes = bytes_max;
    while (bytes >= kAreaBytesMin && with_guard(bytes) > left) bytes /= 2;
    if (bytes < kAreaBytesMin) return {nullptr, 0};
    const Reservation found = SystemPages::area(bytes);
    if (found.base != nullptr) left -= with_guard(found.bytes);
    return found;
  }
  static std::byte* metadata(std::size_t bytes) noexcept {
    if (with_guard(bytes) > left) return nullptr;
    left -= with_guard(bytes);
    return SystemPages::metadata(bytes);
  }
  // What SystemPages::metadata() mapped, or its end.
  static void unmap(void* start, std::size_t bytes) noexcept {
    left += with_guard(bytes);
    SystemPages::unmap(start, bytes);
  }
};

TEST(Tight, NearlyAllOfALimitIsServed) {
  using Spans = BitmapSpans<TightPages>;
  // The table of areas is as long as the page map asks for, which is short in a process with a limit.
  Spans::lock();
  ASSERT_TRUE(Spans::open());
  Spans::unlock();
  TightPages::left = kLimit;
  std::vector<Span*> spans;
  while (Span* const span = Spans::take(1, 1, 1)) spans.push_back(span);
  EXPECT_GE(spans.size() * kUnitBytes, kLimit / 100 * 93) << TightPages::left << " bytes are left";
  EXPECT_LE(Spans::usage().metadata_bytes, kLimit / 50) << "of " << Spans::usage().areas << " areas";
  for (Span* const span : spans) {
    span->next = nullptr;
    std::memset(span->blocks, 1, kUnitBytes);
    Spans::places_of(span).set(UnitPlaces{}.next_clear(0));
    EXPECT_EQ(Spans::span_of(span->blocks + kUnitBytes - 1), span);
  }
  for (Span* const span : spans) {
    Spans::places_of(span) = {};
    Spans::give(span);
  }
  EXPECT_EQ(Spans::verify([](const Span&) { return "a span is in use"; }), nullptr);
}

}  // namespace
}  // namespace loam::heap
