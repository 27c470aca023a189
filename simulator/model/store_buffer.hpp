// The writes of one core that wait for their line, in order, while the core goes on.
//
//   A write drains when its core has the line and all older writes have drained. Each takes an entry until then.
//   Two ways in: put() for a line that no other core has, hold() for one that comes from another core. Only hold() keeps the
//   line, because only such a line can leave again before the core's next writes to it drain.
//
//   B1 the times at which entries drain do not fall from the oldest to the youngest.
#pragma once

#include "simulator/model/first_level.hpp"

#include <algorithm>
#include <cstdint>

namespace loam::simulator {

class StoreBuffer {
 public:
  static constexpr std::uint32_t kEntriesMax = 64;

  void init(Arena& arena) noexcept { entries_ = arena.zeros<Entry>(kEntriesMax); }

  // What waits for one line that comes from another core.
  struct Pending {
    std::uint32_t count = 0;    // writes
    std::uint32_t most = 0;     // that drain before the line goes on to the next core
    std::uint64_t bytes = 0;    // that they write: a read of them is answered from the buffer
    std::uint64_t arrives = 0;  // when the line is there
    bool last_to_come = false;  // no line of a younger write comes later
  };

  // A write whose line takes `cycles`, from the time on at which the one before it has drained.
  // returns how long the core waits for a free entry
  std::uint64_t put(std::uint64_t now, std::uint64_t cycles, std::uint32_t entries) noexcept {
    const std::uint64_t wait = room(now, entries);
    last_ = std::max(now + wait, last_) + cycles;
    add({last_, 0, kNoLine, 0, 0});
    return wait;
  }

  // A write to a line, or to bytes of it, that is there at `arrives`. kNoLine: pending() does not find it. most: if this write
  // has asked for the line, how many drain before it goes on; else 0. returns how long the core waits for a free entry
  std::uint64_t hold(std::uint64_t now, std::uint64_t arrives, std::uint64_t line, std::uint64_t bytes,
                     std::uint32_t most, std::uint32_t entries) noexcept {
    const std::uint64_t wait = room(now, entries);
    last_ = std::max(arrives, last_);
    held_until_ = std::max(arrives, held_until_);
    add({last_, arrives, line, bytes, most});
    return wait;
  }

  // Whether a write waits for a line that comes from another core.
  bool holds(std::uint64_t now) const noexcept { return held_until_ > now; }
  // Whether such a line is what the next write has to wait for: then it takes an entry, even if the core has its own line.
  bool held_up(std::uint64_t now) const noexcept { return holds(now) && last_ == held_until_; }

  Pending pending(std::uint64_t line, std::uint64_t now) const noexcept {
    Pending found;
    for (std::uint32_t i = 0; i < count_; ++i) {
      const Entry& entry = entries_[(first_ + i) % kEntriesMax];
      if (entry.line != line || entry.arrives <= now) continue;
      ++found.count;
      found.bytes |= entry.bytes;
      found.most = std::max(found.most, entry.most);
      found.arrives = entry.arrives;
    }
    found.last_to_come = found.count != 0 && found.arrives == held_until_;
    return found;
  }

  // How long a write would wait for a free entry.
  std::uint64_t wait(std::uint64_t now, std::uint32_t entries) noexcept {
    take_drained(now);
    return count_ == entries ? oldest() - now : 0;
  }

  // How long it takes until it is empty.
  std::uint64_t drain(std::uint64_t now) noexcept {
    count_ = 0;
    held_until_ = 0;
    return last_ > now ? last_ - now : 0;
  }

 private:
  struct Entry {
    std::uint64_t drains, arrives, line, bytes;
    std::uint32_t most;
  };

  std::uint64_t oldest() const noexcept { return entries_[first_].drains; }
  void take() noexcept {
    first_ = (first_ + 1) % kEntriesMax;
    --count_;
  }
  void take_drained(std::uint64_t now) noexcept {
    while (count_ != 0 && oldest() <= now) take();
  }
  std::uint64_t room(std::uint64_t now, std::uint32_t entries) noexcept {
    const std::uint64_t waits = wait(now, entries);
    if (count_ == entries) take();
    return waits;
  }
  void add(const Entry& entry) noexcept {
    entries_[(first_ + count_) % kEntriesMax] = entry;
    ++count_;
  }

  std::uint64_t held_until_ = 0;
  std::uint64_t last_ = 0;
  std::uint32_t first_ = 0, count_ = 0;
  Entry* entries_ = nullptr;  // what each hit looks at is in one cache line of the host
};

}  // namespace loam::simulator
