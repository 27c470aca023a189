// SystemPages: the page source of a process: it gets areas and the heap's own data from the operating system.
//   A page source is all static. area(bytes) reserves an area at a multiple of kAreaBytes, of `bytes` or less (halved
//   until the system agrees). metadata(bytes) returns whole zeroed pages, which are never returned to the system.
//   nullptr: refused. now_ns() is the clock of the decay; a test has its own page source with another clock.
#pragma once

#include "runtime/heap/page_map.hpp"
#include "runtime/platform/keep_errno.hpp"
#include "runtime/platform/machine.hpp"

#include <algorithm>
#include <atomic>
#include <concepts>
#include <span>

namespace loam::heap {

struct Reservation {
  std::byte* base;  // nullptr: refused
  std::size_t bytes;
};

template <class P>
concept PageSource = requires(void* start, std::size_t bytes) {
  { P::area(bytes) } -> std::same_as<Reservation>;
  { P::mapping(bytes) } -> std::same_as<std::byte*>;
  { P::unmap(start, bytes) };
  { P::move(start, bytes, start) } -> std::same_as<bool>;  // false: nothing has moved
  { P::renew(start, bytes) };                              // of an area
  { P::metadata(bytes) } -> std::same_as<std::byte*>;
  { P::purge(start, bytes) };
  { P::zero(start, bytes) };
  { P::huge_pages(start, bytes, true) };
  { P::protect(start, bytes, true) } -> std::same_as<bool>;  // accessible
  { P::now_ns() } -> std::same_as<std::uint64_t>;            // never goes back
};

struct SystemPages {
  static constexpr std::size_t kAreaBytesMin = std::size_t{256} << 10;

  // Not thread-safe. The first area lies at a random place, so that addresses of one run say nothing of the next; the
  // others follow it, since what lies together within 32 MiB shares no ownership record (geometry.hpp).
  static Reservation area(std::size_t bytes_max) noexcept {
    const platform::KeepErrno keep;
    if (next == 0) next = first_area();
    std::size_t bytes = std::min(bytes_max, kAreaBytes) - kUnitBytes;  // the guard page lies in the last unit
    if (bytes < kAreaBytesMin) return {nullptr, 0};
    for (unsigned taken = 0; taken < kTries && (next + kAreaBytes) >> kUnitShift <= PageMap::limit();) {
      auto* const base = reinterpret_cast<std::byte*>(next);
      switch (platform::map_lazy_at(base, bytes, {.huge_pages = false})) {
        case platform::MapResult::done:
          next += kAreaBytes;
          return {base, bytes};
        case platform::MapResult::taken:
          next += kAreaBytes;
          ++taken;
          break;
        case platform::MapResult::refused:
          bytes = bytes / 2 & ~(kUnitBytes - 1);
          if (bytes < kAreaBytesMin) return {nullptr, 0};
      }
    }
    return {nullptr, 0};
  }

  // For one block that is longer than areas serve: at a multiple of kUnitBytes, with an inaccessible page behind it.
  // Where the page map is the small one, at addresses that it covers: from its end downwards, away from the areas.
  // Refused where the kernel's rule for overcommitment says so: areas are reservations, a block is memory.
  static std::byte* mapping(std::size_t bytes) noexcept {
    const platform::KeepErrno keep;
    if (is_map_full()) return static_cast<std::byte*>(platform::map_lazy(bytes, {.is_promised = true}));
    const std::uintptr_t end = PageMap::limit() << kUnitShift;
    const std::size_t taken = base::round_up(bytes, kUnitBytes) + kUnitBytes;  // with the guard page
    if (taken > end / 4) return nullptr;
    for (unsigned tries = 0; tries < kTries; ++tries) {
      // relaxed: whose the addresses are the system decides.
      const std::uintptr_t above = mapped_from_the_end.fetch_add(taken, std::memory_order_relaxed) % (end / 2);
      auto* const start = reinterpret_cast<std::byte*>(end - above - taken);
      switch (platform::map_lazy_at(start, bytes, {.is_promised = true})) {
        case platform::MapResult::done:
          return start;
        case platform::MapResult::taken:
          break;
        case platform::MapResult::refused:
          return nullptr;
      }
    }
    return nullptr;
  }
  static void unmap(void* start, std::size_t bytes) noexcept {
    const platform::KeepErrno keep;
    platform::unmap(start, bytes);
  }

  static bool move(void* from, std::size_t bytes, void* to) noexcept {
    const platform::KeepErrno keep;
    if (platform::move_pages(from, bytes, to)) return true;
    renew(to, bytes);
    return false;
  }
  static void renew(void* start, std::size_t bytes) noexcept {
    const platform::KeepErrno keep;
    platform::renew(start, bytes, {.huge_pages = false});
  }

  static std::byte* metadata(std::size_t bytes) noexcept {
    const platform::KeepErrno keep;
    return static_cast<std::byte*>(platform::map_lazy(bytes, {.huge_pages = false}));
  }

  static void purge(void* start, std::size_t bytes) noexcept {
    const platform::KeepErrno keep;
    platform::purge(start, bytes);
  }
  static void zero(void* start, std::size_t bytes) noexcept {
    const platform::KeepErrno keep;
    platform::zero(start, bytes);
  }
  static bool protect(void* start, std::size_t bytes, bool accessible) noexcept {
    const platform::KeepErrno keep;
    return platform::protect(start, bytes, accessible);
  }
  static void huge_pages(void* start, std::size_t bytes, bool wanted) noexcept {
    const platform::KeepErrno keep;
    platform::advise_huge_pages(start, bytes, wanted);
  }
  static std::uint64_t now_ns() noexcept { return platform::monotonic_ns(); }

 private:
  // Places that something else holds are passed by, so many in a row.
  static constexpr unsigned kTries = 64;

  static std::uintptr_t first_area() noexcept {
    constexpr std::uintptr_t kLow = std::uintptr_t{4} << 30;  // above what is linked at fixed addresses
    if (!is_map_full()) return kLow;
    const std::uintptr_t end = std::min(platform::kRoomyTo, platform::address_end() / 2);
    if (end <= platform::kRoomyFrom) return kLow;
    const std::uintptr_t places = (end - platform::kRoomyFrom) / kAreaBytes;
    std::uint32_t draw = 0;
    platform::random_bytes(std::as_writable_bytes(std::span(&draw, 1)));
    return platform::kRoomyFrom + draw % places * kAreaBytes;
  }

  static bool is_map_full() noexcept { return PageMap::limit() << kUnitShift >> kAddressBits != 0; }

  static inline constinit std::uintptr_t next = 0;
  static inline constinit std::atomic<std::uintptr_t> mapped_from_the_end{0};  // bytes asked for so far
};
static_assert(PageSource<SystemPages>);

}  // namespace loam::heap
