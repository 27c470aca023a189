// Arrivals: a heap's own blocks that other threads freed, until malloc uses them again or they go to their slabs.
//   When the list of a class is empty, the owner takes all batches out of the class's inbox in one exchange. These
//   batches *wait*: malloc uses one after the other as a list. The owner touches only the first block of a waiting
//   batch. The other blocks' lines lie in the caches of the threads that freed them, and reading through thousands of
//   such blocks takes as long as handing them out. The batch that came first is used first, because its lines are most
//   likely to have moved from those caches into one that threads share.
//
//   If an inbox held few blocks (less than kFew), the owner does not look there the next time: the class takes blocks
//   from its shelf or slabs, and more may come meanwhile. If the owner looked each time, it would take the inbox's line
//   from the senders for a batch or two, and get blocks whose lines the senders still have.
//
//   Waiting blocks are of use to no other class or thread, so their number is bounded. If more than kWaitingBytesMax
//   came at once, all of them go to the slabs. Blocks of a class that the thread does not allocate also go there, from
//   the inbox and from the waiting batches: give_unclaimed() gives those that it saw at its last look.
//
//   A thread that sleeps does not look. What lies in an inbox then, another thread may claim (claimed.hpp): an inbox is
//   neglected if more than kWaitingBytesMax came since it was emptied last.
//
//   Cost: some stores for each batch; a look at all classes for each kEmptiedUntilLook emptied inboxes, and when slabs
//   of new memory are made.
//
//   When not: a thread that makes no call at all keeps all these blocks until it ends, or until others claim them.
//
//   A1 a class is unclaimed if it had arrivals when give_unclaimed() looked last, and none of them was used since.
#pragma once

#include "runtime/heap/remote.hpp"
#include "runtime/heap/size_classes.hpp"
#include "runtime/platform/cache_line.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <utility>

namespace loam::heap {

// In this class, give(c, first) gives a list of blocks of class c to their slabs.
template <SizeClasses Classes>
class Arrivals {
 public:
  static constexpr std::size_t kWaitingBytesMax = 1u << 20;
  static constexpr unsigned kEmptiedUntilLook = 64;
  static constexpr std::uint64_t kFew = 256;

  Inbox& inbox(unsigned c) noexcept { return inboxes_[c]; }
  // The same inbox, found by a word of the page map. An inbox is as long as the distance of two classes' words.
  Inbox& inbox_of(PageMap::Word word) noexcept {
    static_assert(sizeof(Inbox) == kWordStep);
    return *reinterpret_cast<Inbox*>(reinterpret_cast<std::byte*>(inboxes_.data()) + word % kHeapAlignment);
  }
  static ChainWord place_of(unsigned c) noexcept { return c == 0 ? ChainWord::mark : ChainWord::third; }

  bool any(unsigned c) const noexcept { return !waiting_[c].empty() || !inboxes_[c].empty(); }

  // Whether an inbox holds a batch. For any thread: what the owner has taken out is not looked at.
  bool any_sent() const noexcept {
    return std::any_of(inboxes_.begin(), inboxes_.end(), [](const Inbox& inbox) { return !inbox.empty(); });
  }

  // Whether so many blocks of the class were sent since the inbox was emptied last that the owner is not looking. A
  // hint, for any thread.
  bool are_neglected(unsigned c) const noexcept {
    return !inboxes_[c].empty() &&
           (inboxes_[c].blocks() - seen_[c].load(std::memory_order_relaxed)) * Classes::bytes_of(c) > kWaitingBytesMax;
  }
  // What the inbox of a class holds. For any thread.
  Chain empty_inbox(unsigned c) noexcept {
    // relaxed: a hint. A batch on its way is counted now and comes later, or the other way round.
    seen_[c].store(inboxes_[c].blocks(), std::memory_order_relaxed);
    return inboxes_[c].take_all();
  }

  // Whether to call take(). If the inbox held few blocks the last time, the answer is no once.
  bool wanted(unsigned c) noexcept {
    if (!waiting_[c].empty()) return true;
    if ((few_ & bit_of(c)) == 0) return !inboxes_[c].empty();
    few_ &= ~bit_of(c);
    return false;
  }

  // Takes a batch of the class. most: bytes that may wait. returns no blocks where more came, which went to the slabs
  template <class Give>
  [[gnu::noinline]] BlockList take(unsigned c, Key key, std::size_t most, Give give) noexcept {
    unclaimed_ &= ~bit_of(c);
    const bool emptied = waiting_[c].empty();
    if (emptied) {
      waiting_[c] = empty_inbox(c);
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

  // The same for one class, claimed or not.
  template <class Give>
  void give(unsigned c, Key key, Give give) noexcept {
    if (any(c)) give_class(c, key, give);
  }

  // The number of blocks that came so far.
  std::uint64_t blocks() const noexcept {
    std::uint64_t sum = 0;
    for (const Inbox& inbox : inboxes_) sum += inbox.blocks();
    return sum;
  }

  // Visits the waiting batches of a class, as Chain::for_each() does.
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
    for (Chain arrived : {std::exchange(waiting_[c], Chain()), empty_inbox(c)})
      while (!arrived.empty()) give(c, arrived.pop(key, place_of(c)).first);
  }

  std::array<Chain, Classes::kClasses> waiting_{};
  std::uint64_t unclaimed_ = 0;  // A1: a bit for each class
  std::uint64_t few_ = 0;        // a bit for each class whose inbox held few blocks the last time
  unsigned emptied_ = 0;         // inboxes emptied so far
  std::array<std::atomic<std::uint64_t>, Classes::kClasses> seen_{};  // blocks sent when the inbox was emptied last
  alignas(platform::kApartBytes) std::array<Inbox, Classes::kClasses> inboxes_{};
};

}  // namespace loam::heap
