// Log: an array that only grows, in OS pages, at one address for ever.
//   Its addresses are reserved once and backed as they are touched, so growing moves nothing: another thread may read
//   an entry of it (to learn what a locked record guards) while the owner appends. Where the system refuses the range
//   (`ulimit -v`), a small part of it is taken.
#pragma once

#include "runtime/base/check.hpp"
#include "runtime/tm/logs/log_space.hpp"

#include <cstddef>

namespace loam::tm {

template <class Entry>
class Log {
 public:
  // Reserves up to `capacity` entries. `what` names the log in the message of a full one. `offset_bytes` (a multiple of
  // the entry's alignment) shifts the first entry: logs that all began at a page's start would share cache sets.
  void reserve(std::size_t capacity, std::size_t offset_bytes, const char* what) noexcept {
    const auto map = [&](std::size_t entries) { return LogSpace::map(entries * sizeof(Entry) + offset_bytes); };
    void* start = map(capacity);
    // Far less at once, not half by half: other logs and threads need what the limit leaves, too.
    if (start == nullptr) start = map(capacity /= kShareWhereRefused);
    LOAM_CHECK(start != nullptr, "tm: no address space for the {}; raise `ulimit -v`", what);
    begin_ = reinterpret_cast<Entry*>(static_cast<std::byte*>(start) + offset_bytes);
    end_ = begin_ + capacity;
    capacity_ = capacity;
    what_ = what;
  }

  // For a log that few threads need: call it when the log has no room. It reserves the addresses, or ends the program if
  // they are used up.
  void reserve_or_die(std::size_t capacity, const char* what) noexcept {
    if (capacity_ != 0) full();
    reserve(capacity, 0, what);
  }

  Entry* begin() const noexcept { return begin_; }
  Entry* end() const noexcept { return end_; }
  std::size_t capacity() const noexcept { return capacity_; }

  [[noreturn, gnu::cold, gnu::noinline]] void full() const noexcept {
    LOAM_FATAL("tm: a transaction filled its {} ({} entries); split it, or raise `ulimit -v`", what_, capacity());
  }

 private:
  static constexpr std::size_t kShareWhereRefused = 1024;

  Entry* begin_ = nullptr;
  Entry* end_ = nullptr;
  std::size_t capacity_ = 0;
  const char* what_ = "";
};

}  // namespace loam::tm
