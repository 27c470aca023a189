// Log: entries of one size in chunks, the oldest first. Appending is a store, a bump and a compare; there is always
// room for one more ("grow after append"). Chunks are full but the last one, so an entry's number tells its place.
//   The store decides where chunks lie and when they are freed (logs/store.hpp).
//   Invariants
//   L1 next_ < limit_, but while a store makes room.   L2 all chunks but the last are full.
//   L3 entries below the watermark refer to old objects only: a minor collection need not look at them.
#pragma once

#include "runtime/gc/object.hpp"
#include "runtime/gc/os_vector.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace loam::gc {

class LogChunk : public Array {
 public:
  std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  static Descriptor describe() {
    return {.shape = Shape::chunk, .bytes = sizeof(LogChunk), .element_bytes = 1, .name = "chunk of a log"};
  }
};

class LogBase {
 public:
  explicit LogBase(std::size_t entry_bytes) noexcept : entry_bytes_(entry_bytes) {}

  std::size_t size() const noexcept {
    if (chunks_.empty()) return 0;
    const auto in_last = static_cast<std::size_t>(next_ - last().data()) / entry_bytes_;
    return (chunks_.size() - 1) * per_chunk_ + in_last;
  }
  std::size_t entry_bytes() const noexcept { return entry_bytes_; }
  std::size_t chunks() const noexcept { return chunks_.size(); }
  std::size_t watermark() const noexcept { return watermark_; }
  void set_watermark(std::size_t entries) noexcept { watermark_ = entries; }

 protected:
  friend class LogStore;  // hands the few things that stores change on to them
  LogChunk& last() const noexcept { return *chunks_[chunks_.size() - 1]; }

  std::byte *next_ = nullptr, *limit_ = nullptr;
  OsVector<LogChunk*> chunks_;
  const std::size_t entry_bytes_;
  std::size_t per_chunk_ = 1;
  std::size_t watermark_ = 0;
};

template <class Entry>
class Log : public LogBase {
 public:
  static constexpr std::size_t kEntryBytes = sizeof(Entry);

  Log() noexcept : LogBase(sizeof(Entry)) {}

  // The place of the next entry; taken() adds it to the log.
  Entry& next() noexcept { return *reinterpret_cast<Entry*>(next_); }
  // returns whether the store must make room now
  [[gnu::always_inline]] bool taken() noexcept {
    next_ += sizeof(Entry);
    return next_ == limit_;
  }

  // visit(entry, number) for the entries from `first` to before `end`, the oldest first.
  template <class Visit>
  void for_each(std::size_t first, std::size_t end, Visit&& visit) const {
    while (first < end) {
      const std::size_t chunk = first / per_chunk_, stop = std::min(end, (chunk + 1) * per_chunk_);
      for (auto* entry = place(first); first < stop; ++first, ++entry) visit(*entry, first);
    }
  }
  // The number of the first entry from `first` to before `end` for which stops(entry) is true; `end` if there is none.
  // fetch(entry) is called some entries ahead.
  template <class Stops, class Fetch>
  std::size_t first_where(std::size_t first, std::size_t end, Stops&& stops, Fetch&& fetch) const {
    constexpr std::size_t kAhead = 8;  // the processor waits for about as many lines at a time
    while (first < end) {
      const std::size_t chunk = first / per_chunk_, stop = std::min(end, (chunk + 1) * per_chunk_);
      for (auto* entry = place(first); first < stop; ++first, ++entry) {
        if (first + kAhead < stop) fetch(entry[kAhead]);
        if (stops(*entry)) return first;
      }
    }
    return end;
  }
  // As first_where(), if stops(entry) needs to be called only for entries for which concern(entry) is true. Skips the
  // others in blocks, in a loop without branches.
  template <class Concern, class Stops>
  std::size_t first_where_of(std::size_t first, std::size_t end, Concern&& concern, Stops&& stops) const {
    constexpr std::size_t kBlock = 8;  // entries of 4 bytes in a register of 32
    while (first < end) {
      const std::size_t chunk = first / per_chunk_, stop = std::min(end, (chunk + 1) * per_chunk_);
      auto* entry = place(first);
      while (first < stop) {
        if (stop - first >= kBlock) {
          std::uint32_t concerned = 0;
          for (std::size_t i = 0; i < kBlock; ++i) concerned |= concern(entry[i]) ? 1U : 0U;
          if (concerned == 0) {
            first += kBlock;
            entry += kBlock;
            continue;
          }
        }
        for (const std::size_t end_of_block = std::min(first + kBlock, stop); first < end_of_block; ++first, ++entry)
          if (concern(*entry) && stops(*entry)) return first;
      }
    }
    return end;
  }
  template <class Visit>
  void for_each_backwards(std::size_t first, Visit&& visit) const {
    for (std::size_t number = size(); number-- > first;) visit(*place(number));
  }
  // Goes from one place to the next, over the ends of chunks.
  class Cursor {
   public:
    Cursor(const Log& log, std::size_t number) noexcept : log_(log), chunk_(number / log.per_chunk_) {
      enter(number % log.per_chunk_);
    }
    Entry& operator*() const noexcept { return *at_; }
    void advance() noexcept {
      if (++at_ != end_) return;
      ++chunk_;
      enter(0);
    }

   private:
    void enter(std::size_t index) noexcept {
      if (chunk_ == log_.chunks_.size()) return;
      auto* const first = reinterpret_cast<Entry*>(log_.chunks_[chunk_]->data());
      at_ = first + index;
      end_ = first + log_.per_chunk_;
    }

    const Log& log_;
    std::size_t chunk_;
    Entry *at_ = nullptr, *end_ = nullptr;
  };

  Entry* place(std::size_t number) const noexcept {
    return reinterpret_cast<Entry*>(chunks_[number / per_chunk_]->data()) + number % per_chunk_;
  }
};

}  // namespace loam::gc
