// Arrivals: a heap's own blocks that other threads freed, until they serve again or go to their slabs.
//   A class that runs out takes its inbox in one exchange; what came in *waits*, and serves a batch at a time. Of a batch
//   that waits the first block alone is touched: the lines lie in the caches of the threads that freed it, and to walk
//   many thousand such blocks takes as long as to hand them out. The batch that came first serves first: its lines are
//   the ones most likely to have left those caches for one that threads share.
//
//   An inbox that held few blocks is passed by once: the class takes from its slabs, and more may come meanwhile. A thread
//   that looked each time would take its inbox's line from the senders for a batch or two, and get blocks whose lines the
//   senders still have.
//
//   What waits serves nobody else, so it is bounded. Where more came than kWaitingBytesMax, all of it goes to the slabs.
//   So does what lies in an inbox or waits while nobody asks for its class: give_unclaimed() gives what it has seen
//   before.
//
//   Cost: a batch is some stores; a look at all classes once in kEmptiedUntilLook inboxes, and before a slab is made.
//
//   When not: a thread that makes no call at all keeps everything, until it ends.
//
//   A1 a class is unclaimed if something of it had arrived when give_unclaimed() looked last, and none has served since.
#pragma once

#include "runtime/heap/remote.hpp"
#include "runtime/heap/size_classes.hpp"
#include "runtime/platform/cache_line.hpp"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <utility>

namespace loam::heap {

// Here and below: give(c, first) gives a list of blocks of a class to their slabs.
template <SizeClasses Classes>
class Arrivals {
 public:
  static constexpr std::size_t kWaitingBytesMax = 1u << 20;
  static constexpr unsigned kEmptiedUntilLook = 64;
  static constexpr std::uint64_t kFew = 256;

  Inbox& inbox(unsigned c) noexcept { return inboxes_[c]; }
  // The same by the word of the page map. Inboxes are as long as the steps in which it counts classes.
  Inbox& inbox_of(PageMap::Word word) noexcept {
    static_assert(sizeof(Inbox) == kWordStep);
    return *reinterpret_cast<Inbox*>(reinterpret_cast<std::byte*>(inboxes_.data()) + word % kHeapAlignment);
  }
  static ChainWord place_of(unsigned c) noexcept { return c == 0 ? ChainWord::mark : ChainWord::third; }

  bool any(unsigned c) const noexcept { return !waiting_[c].empty() || !inboxes_[c].empty(); }

  // Whether to ask take(): once not, where the inbox held few blocks the last time.
  bool wanted(unsigned c) noexcept {
    if (!waiting_[c].empty()) return true;
    if ((few_ & bit_of(c)) == 0) return !inboxes_[c].empty();
    few_ &= ~bit_of(c);
    return false;
  }

  // A batch of the class, if there are any. most: bytes that may wait. none: more came, and went to the slabs
  template <class Give>
  [[gnu::noinline]] BlockList take(unsigned c, Key key, std::size_t most, Give give) noexcept {
    unclaimed_ &= ~bit_of(c);
    const bool emptied = waiting_[c].empty();
    if (emptied) {
      waiting_[c] = inboxes_[c].take_all();
      const std::uint64_t blocks = waiting_[c].turn(place_of(c));
      if (blocks < kFew) few_ |= bit_of(c);
      if (blocks * Classes::bytes_of(c) > most) {
        give_class(c, key, give);
        return {nullptr, 0};
      }
    }
    const BlockList batch = waiting_[c].pop(key, place_of(c));
    if (emptied && ++emptied_ % kEmptiedUntilLook == 0) give_unclaimed(key, give);
    return batch;
  }

  template <class Give>
  void give_all(Key key, Give give) noexcept {
    for (unsigned c = 0; c < Classes::kClasses; ++c)
      if (any(c)) give_class(c, key, give);
  }

  template <class Give>
  [[gnu::noinline]] void give_unclaimed(Key key, Give give) noexcept {
    const std::uint64_t unclaimed = std::exchange(unclaimed_, 0);
    for (unsigned c = 0; c < Classes::kClasses; ++c) {
      if (!any(c)) continue;
      if ((unclaimed & bit_of(c)) != 0)
        give_class(c, key, give);
      else
        unclaimed_ |= bit_of(c);
    }
  }

  // Blocks that came so far.
  std::uint64_t blocks() const noexcept {
    std::uint64_t sum = 0;
    for (const Inbox& inbox : inboxes_) sum += inbox.blocks();
    return sum;
  }

  // The batches that wait of a class, as Chain::for_each().
  template <class Visit>
  const char* for_each_waiting(unsigned c, Visit visit) const noexcept {
    return waiting_[c].for_each(place_of(c), visit);
  }

 private:
  static_assert(Classes::kClasses <= 64, "a bit for each class");
  static constexpr std::uint64_t bit_of(unsigned c) noexcept { return std::uint64_t{1} << c; }

  static_assert(Classes::bytes_of(0) == 2 * sizeof(std::uintptr_t) && Classes::bytes_of(1) > Classes::bytes_of(0));

  template <class Give>
  void give_class(unsigned c, Key key, Give give) noexcept {
    for (Chain arrived : {std::exchange(waiting_[c], Chain()), inboxes_[c].take_all()})
      while (!arrived.empty()) give(c, arrived.pop(key, place_of(c)).first);
  }

  std::array<Chain, Classes::kClasses> waiting_{};
  std::uint64_t unclaimed_ = 0;  // A1: a bit for each class
  std::uint64_t few_ = 0;        // a bit for each class whose inbox held few blocks the last time
  unsigned emptied_ = 0;         // inboxes, so far
  alignas(platform::kApartBytes) std::array<Inbox, Classes::kClasses> inboxes_{};
};

}  // namespace loam::heap
