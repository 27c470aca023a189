// RefusingPages: the system's pages for a heap under test. Requests are counted, refused as a test says, and accounted
// for until they are given back. Areas are short, so that a few MiB of blocks ask for several.
//   One per process, like the heap over it: cases that need a fresh heap run in children (child.hpp).
#pragma once

#include "runtime/heap/page_source.hpp"

#include <algorithm>
#include <atomic>
#include <limits>

namespace loam::tests {

class RefusingPages {
 public:
  static constexpr std::size_t kAreaBytesMax = std::size_t{4} << 20;
  static constexpr std::int64_t kAllThatFollow = std::numeric_limits<std::int64_t>::max();

  // Serves `served` requests from now on, then refuses `refused`, then serves again.
  static void refuse(std::int64_t served, std::int64_t refused) noexcept {
    asked_ = 0;
    from_ = served;
    until_ = refused == kAllThatFollow ? kAllThatFollow : served + refused;
  }
  static void serve_all() noexcept { refuse(0, 0); }

  // Requests since the last call of either.
  static std::int64_t requests() noexcept { return asked_; }
  static std::int64_t refusals() noexcept { return std::clamp<std::int64_t>(asked_ - from_, 0, until_ - from_); }

  // Bytes of mappings and metadata that were given and not given back; areas never go back.
  static std::int64_t bytes_out() noexcept { return bytes_out_; }

  // ---- a page source (page_source.hpp)

  static heap::Reservation area(std::size_t bytes_max) noexcept {
    if (is_refused()) return {nullptr, 0};
    const heap::Reservation found = Inner::area(bytes_max);
    return {found.base, std::min(found.bytes, kAreaBytesMax)};
  }
  static std::byte* mapping(std::size_t bytes) noexcept {
    return is_refused() ? nullptr : out(Inner::mapping(bytes), bytes);
  }
  static std::byte* metadata(std::size_t bytes) noexcept {
    return is_refused() ? nullptr : out(Inner::metadata(bytes), bytes);
  }
  static void unmap(void* start, std::size_t bytes) noexcept {
    bytes_out_ -= static_cast<std::int64_t>(bytes);
    Inner::unmap(start, bytes);
  }
  static bool move(void* from, std::size_t bytes, void* to) noexcept {
    return !is_refused() && Inner::move(from, bytes, to);
  }
  static void renew(void* start, std::size_t bytes) noexcept { Inner::renew(start, bytes); }
  static void purge(void* start, std::size_t bytes) noexcept { Inner::purge(start, bytes); }
  static void zero(void* start, std::size_t bytes) noexcept { Inner::zero(start, bytes); }
  static std::uint64_t now_ns() noexcept { return Inner::now_ns(); }
  // Closing pages may be refused, as it is where the system has no more mappings.
  static bool protect(void* start, std::size_t bytes, bool accessible) noexcept {
    return (accessible || !is_refused()) && Inner::protect(start, bytes, accessible);
  }
  static void huge_pages(void* start, std::size_t bytes, bool wanted) noexcept {
    Inner::huge_pages(start, bytes, wanted);
  }

 private:
  using Inner = heap::SystemPages;

  static bool is_refused() noexcept {
    const std::int64_t request = asked_++;
    return request >= from_ && request < until_;
  }
  static std::byte* out(std::byte* start, std::size_t bytes) noexcept {
    if (start != nullptr) bytes_out_ += static_cast<std::int64_t>(bytes);
    return start;
  }

  static inline std::atomic<std::int64_t> asked_{0}, from_{0}, until_{0}, bytes_out_{0};
};
static_assert(heap::PageSource<RefusingPages>);

}  // namespace loam::tests
