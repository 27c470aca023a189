// ThreadHeap: the heap of one thread, without locks and without atomic instructions.
//   It has a list of free blocks per class: malloc pops, free pushes. When a list is empty, blocks come from those
//   borrowed from other heaps, from the arrivals (own blocks that other threads freed), from the shelf of full lists,
//   from the slabs, and, before slabs are made, from what other heaps do not take in (claimed.hpp). Freed blocks of other
//   heaps are borrowed, or leave by the outbox.
//   Cost: malloc 16 and free 21 instructions. malloc prefetches the next block, so a block is in the cache when it is
//   handed out.
//
//   When not: a thread that frees far more than it ever allocates keeps a full shelf until it ends.
//
//   T1 each block of a list and of the shelf is of that class, carved from some heap's slab, and linked with the key.
//
//   T2 a list grows by at most batch_of(class) before settle() puts it on the shelf; a list of middling blocks grows to
//   at most that length. Its room is the number of blocks that may still be added.
//
//   T3 a heap is touched by the thread that holds its lock `use`: the one it is attached to, or, while it is idle, one
//   that tends it (thread_heaps.hpp).
//
//   T6 a class looked at twice without being filled between has no lists then: its blocks are in their slabs, which may
//   be whole or stripped for it. Of a class that was filled, the shelf gives the lists that lay there at the last look.
//
//   T5 a block in a stock is in no list, whatever its mark says.
//
//   T4 the end block lies kEnd bytes behind the heap's address, and its link decodes to a negative number.
#pragma once

#include "runtime/heap/arrivals.hpp"
#include "runtime/heap/borrowed.hpp"
#include "runtime/heap/claimed.hpp"
#include "runtime/heap/remote.hpp"
#include "runtime/heap/serving_order.hpp"
#include "runtime/heap/shelf.hpp"
#include "runtime/heap/slabs.hpp"
#include "runtime/heap/stocks.hpp"
#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/machine_stores.hpp"
#include "runtime/sync/owned_lock.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <type_traits>

namespace loam::heap {

enum class HeapState : std::uint32_t { attached, idle, lost };  // lost: its thread ended in a fork

template <SizeClasses Classes, SpanStore Spans>
class alignas(kHeapAlignment) ThreadHeap {
  static constexpr unsigned kClasses = Classes::kClasses;
  static_assert(kClasses * kWordStep <= kHeapAlignment, "the class fits below the owner's address");

 public:
  // Makes the sentinel, the heap of threads that have none: every list is empty, and no word of the page map names it.
  constexpr ThreadHeap() noexcept : end_{&lists_[1]} {
    for (List& list : lists_) list.head = &end_;
  }

  // A heap that serves.
  ThreadHeap(Zeroed zeroed, ServingOrder order) noexcept
      : slots_(offsets_of_slots()), end_{&lists_[1]}, slabs_(order), outbox_(zeroed), shelf_(zeroed) {
    for (unsigned c = 0; c < kClasses; ++c) start_over(c, {});
  }

  // nullptr: the list is empty, or n is not one that lists serve; then take() or a large block.
  [[gnu::always_inline]] void* pop(std::size_t n) noexcept {
    if (n <= Classes::kSmallMax) [[likely]]
      return pop(at_offset(slots_[(n + kBlockAlignment - 1) / kBlockAlignment]));
    return n <= Classes::kMax ? pop_class(Classes::class_of(n)) : nullptr;
  }

  [[gnu::always_inline]] void* pop_class(unsigned c) noexcept { return pop(lists_[c]); }

  // Takes a block back, of the unit with this word. returns false where the block is not this heap's or marked as free
  // Here and below: send(word, batch) pushes a batch into an inbox. The word of the batch's units names this inbox.
  template <class Send>
  [[gnu::always_inline]] bool push(FreeBlock* block, PageMap::Word word, Send send) noexcept {
    return (word ^ key()) < sizeof lists_ && block->mark != key() && push_unmarked(block, word, send);
  }
  // The same for a block that is known not to be marked as free.
  template <class Send>
  [[gnu::always_inline]] bool push_unmarked(FreeBlock* block, PageMap::Word word, Send send) noexcept {
    const PageMap::Word offset = word ^ key();  // of an own block's list
    if (offset >= sizeof lists_) [[unlikely]]
      return false;
    List& list = *reinterpret_cast<List*>(word);
    block->mark = key();
    block->link = encoded(address_of(list.head), key());
    list.head = block;
    // From the word alone, which nothing else is made of here.
    if (--list.room < 0) [[unlikely]]
      owner_of(word)->settle(class_of(word), send);
    return true;
  }

  // Whether blocks of the unit with this word are what requests of n bytes get, n <= kSmallMax, and this heap's.
  [[gnu::always_inline]] bool serves(PageMap::Word word, std::size_t n) const noexcept {
    return (word ^ key()) == slots_[(n + kBlockAlignment - 1) / kBlockAlignment];
  }

  // Fills the empty list of a class and pops. nullptr: no memory, but for what lists of other classes hold
  // neglectful(c, heap): another heap that neglects its inbox of the class, nullptr: none found
  template <class Send, class Neglectful>
  void* take(unsigned c, Send send, Neglectful neglectful) noexcept {
    if (const BlockList near = borrowed_.take(c); near.first != nullptr) return pop_first(c, near);
    if (arrivals_.wanted(c)) [[unlikely]]
      if (const BlockList batch = arrivals_.take(c, key(), waiting_max(c), to_slabs(send)); batch.first != nullptr)
        return pop_first(c, batch);
    BlockList found = shelf_.take(c, key());
    if (found.first == nullptr) {
      // Long blocks come this way every few calls, and soon to the store.
      if (Classes::bytes_of(c) < kLongBytes) Spans::decay_if_due();
      if (--refills_left_ == 0) [[unlikely]]
        look(send);
      found = slabs_.take(
          c, key(), [this, c, neglectful] { return take_claimed(c, neglectful); }, [this, send] { grow(send); });
    }
    return found.first != nullptr ? pop_first(c, found) : nullptr;
  }

  // When lists_[c].room has reached zero: puts the whole list on the shelf. It is not walked to be cut, because its
  // blocks may be in the caches of other processors.
  template <class Send>
  [[gnu::noinline]] void settle(unsigned c, Send send) noexcept {
    const BlockList list{first_of(c), length_of(c)};
    start_over(c, {});
    if (limits_[c].looks > 1 || slabs_.is_by_address(c) || !shelf_.put(c, list)) give_here(list.first, c, send);
  }

  // Gives all blocks that other threads have freed to the slabs.
  template <class Send>
  void receive(Send send) noexcept {
    arrivals_.give_all(key(), to_slabs(send));
  }

  // The same for a block of another heap. returns false where nothing collects blocks like it, or it is marked as free
  // or none
  template <class Send>
  [[gnu::always_inline]] bool push_away(FreeBlock* block, PageMap::Word word, Send send) noexcept {
    const Key owner = owner_key_of(word);
    if (!outbox_.collects(word) || block->mark == owner || address_of(block) % kBlockAlignment != 0) [[unlikely]]
      return false;
    outbox_.add(block, word, owner, send);
    return true;
  }

  // Any block of another heap.
  template <class Send>
  [[gnu::noinline]] void free_remote(FreeBlock* block, PageMap::Word word, Send send) noexcept {
    const unsigned c = class_of(word);
    if (!borrowed_.keep(c, block, key(), owner_key_of(word))) outbox_.put(block, word, Classes::bytes_of(c), send);
  }
  // Only after give_all(), which may put blocks into the outbox.
  template <class Send>
  void send_all(Send send) noexcept {
    outbox_.flush_all(send);
  }

  Inbox& inbox(unsigned c) noexcept { return arrivals_.inbox(c); }
  // Pushes a batch into this heap's inbox. word: of the units in which the batch's blocks lie.
  void arrive(PageMap::Word word, Batch batch) noexcept {
    arrivals_.inbox_of(word).push(batch, Arrivals<Classes>::place_of(class_of(word)));
  }

  // Any thread may ask.
  bool neglects(unsigned c) const noexcept { return arrivals_.are_neglected(c); }

  // Blocks of this heap that other threads have freed.
  std::uint64_t blocks_received() const noexcept { return arrivals_.blocks(); }

  // ---- for the thread's transactions ----

  // nullptr: there were none yet.
  heap::Stocks<Classes>* stocks() noexcept { return stocks_; }
  void keep_stocks(heap::Stocks<Classes>* stocks) noexcept { stocks_ = stocks; }
  void end_loan() noexcept {
    if (stocks_ != nullptr) stocks_->end_loan();
  }
  // The same where the borrower has gone together with its thread.
  void forget_loan() noexcept {
    if (stocks_ != nullptr) stocks_->forget_loan();
  }

  // As push(), onto the stock of its class. returns false where that is full as well
  [[gnu::always_inline]] bool push_stock(FreeBlock* block, PageMap::Word word) noexcept {
    const PageMap::Word offset = word ^ key();
    return stocks_ != nullptr && offset < heap::Stocks<Classes>::kOffsetsEnd && block->mark != key() &&
           stocks_->put(offset, block);
  }

  // Takes up to `most` blocks out of the list of a class, as they are: marked as free. returns how many
  std::uint32_t take_listed(unsigned c, void** to, std::uint32_t most) noexcept {
    List& list = lists_[c];
    std::uint32_t count = 0;
    for (; count < most && list.head != &end_; ++count) {
      auto* const block = static_cast<FreeBlock*>(list.head);
      list.head = reinterpret_cast<void*>(decoded(block->link, key()));
      to[count] = block;
    }
    list.room += count;
    return count;
  }

  // Returns all free blocks to their slabs, and whole slabs to the store.
  template <class Send>
  void give_all(Send send) noexcept {
    slabs_.gather_whole();
    receive(send);
    if (stocks_ != nullptr)
      stocks_->empty([this, send](unsigned c, FreeBlock* block) {
        put_before(block, nullptr, key());
        give(block, c, send);
      });
    for (unsigned c = 0; c < kClasses; ++c) give_class(c, send);
    slabs_.give_whole();
  }

  // Of an idle heap, whose lists are empty: gives what other threads freed to the slabs, and whole slabs to the store.
  template <class Send>
  void give_arrivals(Send send) noexcept {
    slabs_.gather_whole();
    receive(send);
    slabs_.give_whole();
  }
  // Whether blocks that other threads freed lie in an inbox. Any thread may ask.
  bool has_arrivals() const noexcept { return arrivals_.any_sent(); }

  Key key() const noexcept { return address_of(this); }

  // Of a slab's word. (owner_key_of: of any word; no heap is looked at.)
  static ThreadHeap* owner_of(PageMap::Word word) noexcept { return reinterpret_cast<ThreadHeap*>(owner_key_of(word)); }
  static Key owner_key_of(PageMap::Word word) noexcept { return word & ~PageMap::Word{kHeapAlignment - 1}; }
  static unsigned class_of(PageMap::Word word) noexcept {
    return static_cast<unsigned>(word % kHeapAlignment / kWordStep);
  }

  // Whether the block is in one of this heap's lists. If it has our mark and is freed again, this proves a double free.
  bool holds(const FreeBlock* block, unsigned c) const noexcept {
    if (contains(first_of(c), block) || contains(borrowed_.kept(c).first, block)) return true;
    if (stocks_ != nullptr && stocks_->has(c, block)) return true;
    for (const auto& list : shelf_.lists(c))
      if (contains(list.first, block)) return true;
    return Slabs<Classes, Spans>::has_back(block, key());
  }

  // nullptr, or the invariant that does not hold.
  const char* verify() const noexcept {
    if (address_of(&end_) != key() + kEnd || static_cast<std::intptr_t>(decoded(address_of(end_.link), key())) >= 0)
      return "T4: the end block is in its place";
    for (unsigned c = 0; c < kClasses; ++c) {
      if (const char* const broken = verify_list({first_of(c), length_of(c)}, c)) return broken;
      if (const char* const broken = verify_list(borrowed_.kept(c), c)) return broken;
      for (const auto& list : shelf_.lists(c))
        if (const char* const broken = verify_list({list.first, list.count}, c)) return broken;
      const auto verify_batch = [this, c](const Batch& batch) { return verify_list(batch, c); };
      if (const char* const broken = arrivals_.for_each_waiting(c, verify_batch)) return broken;
      const auto verify_claimed = [c](const Batch& batch, Key owner) { return verify_list(batch, c, owner); };
      if (const char* const broken = claimed_.for_each(c, verify_claimed)) return broken;
    }
    return stocks_ == nullptr ? nullptr : stocks_->verify(is_carved);
  }

 private:
  static constexpr std::size_t kShortBatchBytes = 16u << 10, kLongBatchBytes = 256u << 10;
  static constexpr std::int32_t kMiddlingBatch = 32, kLeastBatch = 16;
  static constexpr std::uint32_t kRefillsUntilLook = 2048;

  struct alignas(kWordStep) List {
    void* head;         // a FreeBlock, or the End
    std::int64_t room;  // what the list may grow by until settle()
  };

  // Read as a FreeBlock. A pointer to what lies behind the heap's address: the compiler makes no number of an address.
  struct End {
    const void* link;
  };

  [[gnu::always_inline]] void* pop(List& list) noexcept {
    auto* const block = static_cast<FreeBlock*>(list.head);
    const std::uintptr_t next = decoded(block->link, key());
    if (static_cast<std::intptr_t>(next) < 0) [[unlikely]]
      return nullptr;  // T4: it is the end
    auto* const second = reinterpret_cast<FreeBlock*>(next);
    platform::store_pair(list, second, list.room + 1);
    __builtin_prefetch(second);  // ADR 0018
    block->mark = 0;             // or a free of it would look like a second one
    return block;
  }

  // Offsets of the lists that serve requests of 0, 1, 2 ... slots of 16 bytes.
  static constexpr auto offsets_of_slots() noexcept {
    std::array<std::uint16_t, Classes::small_slots().size()> offsets{};
    for (std::size_t slot = 0; slot < offsets.size(); ++slot)
      offsets[slot] = static_cast<std::uint16_t>(Classes::small_slots()[slot] * sizeof(List));
    return offsets;
  }

  // Lists of long blocks hold more bytes, so that a way to the slabs and back moves enough blocks.
  static constexpr auto kBatches = [] {
    std::array<std::int32_t, kClasses> batches{};
    for (unsigned c = 0; c < kClasses; ++c) {
      const std::size_t bytes = Classes::bytes_of(c), batch = bytes < kLongBytes ? kShortBatchBytes : kLongBatchBytes;
      batches[c] = Shelf<Classes>::is_middling(c) ? kMiddlingBatch
                                                  : std::max(static_cast<std::int32_t>(batch / bytes), kLeastBatch);
    }
    return batches;
  }();

  static constexpr std::int32_t batch_of(unsigned c) noexcept { return kBatches[c]; }

  void start_over(unsigned c, const BlockList& list) noexcept {
    limits_[c].length = batch_of(c) + (Shelf<Classes>::is_middling(c) ? 0 : static_cast<std::int32_t>(list.count));
    lists_[c] = {list.first != nullptr ? list.first : static_cast<void*>(&end_),
                 limits_[c].length - std::int64_t{list.count}};
  }
  // Fills the empty list of a class and pops.
  void* pop_first(unsigned c, const BlockList& list) noexcept {
    limits_[c].looks = 0;
    start_over(c, list);
    return pop_class(c);
  }
  // nullptr: the list is empty.
  FreeBlock* first_of(unsigned c) const noexcept {
    return lists_[c].head == &end_ ? nullptr : static_cast<FreeBlock*>(lists_[c].head);
  }
  std::uint32_t length_of(unsigned c) const noexcept {
    return static_cast<std::uint32_t>(limits_[c].length - lists_[c].room);
  }

  // The list at an offset in bytes, which is what slots_ holds: nothing is scaled on the way.
  List& at_offset(std::size_t offset) noexcept {
    return *reinterpret_cast<List*>(reinterpret_cast<std::byte*>(lists_.data()) + offset);
  }

  // How many bytes of blocks that other threads freed may wait in a chain. Blocks that serve by address: one full list.
  std::size_t waiting_max(unsigned c) const noexcept {
    return slabs_.is_by_address(c) ? static_cast<std::size_t>(batch_of(c)) * Classes::bytes_of(c)
                                   : Arrivals<Classes>::kWaitingBytesMax;
  }

  // Gives own blocks to their slabs, and borrowed ones to their owners.
  template <class Send>
  [[gnu::noinline]] void give(FreeBlock* first, unsigned c, Send send) noexcept {
    give_here(first, c, send);
  }
  // The same, inlined: a free of long blocks calls it often.
  template <class Send>
  [[gnu::always_inline]] void give_here(FreeBlock* first, unsigned c, Send send) noexcept {
    slabs_.give(first, c, key(), [this, c, send](FreeBlock* block, PageMap::Word word) {
      outbox_.put(block, word, Classes::bytes_of(c), send);
    });
  }

  // When the heap got more slabs.
  template <class Send>
  [[gnu::noinline]] void grow(Send send) noexcept {
    arrivals_.give_unclaimed(key(), to_slabs(send));
    if (slabs_.is_period_over())
      look(send);
    else if (slabs_.is_strip_due())
      slabs_.strip(key());
  }

  // Gives blocks to their slabs that were not needed since the last look (T6), and begins a period of the slabs.
  template <class Send>
  [[gnu::noinline]] void look(Send send) noexcept {
    refills_left_ = kRefillsUntilLook;
    for (unsigned c = 0; c < kClasses; ++c) {
      if (limits_[c].looks++ == 0) {
        shelf_.give_old(c, to_slabs(send));
      } else {
        arrivals_.give(c, key(), to_slabs(send));
        if (has_lists(c)) give_class(c, send);
      }
    }
    outbox_.flush_all(send);
    slabs_.begin_period(key());
  }

  // Some blocks that another heap does not take in; none where there is no such heap.
  template <class Neglectful>
  [[gnu::noinline]] BlockList take_claimed(unsigned c, Neglectful neglectful) noexcept {
    if (claimed_.empty(c))
      if (ThreadHeap* const other = neglectful(c, *this); other != nullptr)
        claimed_.add(c, other->arrivals_.empty_inbox(c), other->key());
    return claimed_.take(c, key());
  }

  bool has_lists(unsigned c) const noexcept {
    return lists_[c].head != &end_ || borrowed_.kept(c).first != nullptr || !shelf_.lists(c).empty() ||
           !claimed_.empty(c);
  }
  template <class Send>
  void give_class(unsigned c, Send send) noexcept {
    FreeBlock* const list = first_of(c);
    start_over(c, {});
    give(list, c, send);
    give(borrowed_.take_all(c).first, c, send);
    claimed_.send_back(c, Slabs<Classes, Spans>::word_of, send);
    for (BlockList shelved = shelf_.take(c, key()); shelved.first != nullptr; shelved = shelf_.take(c, key()))
      give(shelved.first, c, send);
  }

  template <class Send>
  auto to_slabs(Send send) noexcept {
    return [this, send](unsigned c, FreeBlock* first) { give(first, c, send); };
  }

  bool contains(const FreeBlock* list, const FreeBlock* block) const noexcept {
    while (list != nullptr && list != block) list = next_of(list, key());
    return list != nullptr;
  }

  static bool is_carved(unsigned c, const FreeBlock* block) noexcept {
    const PageMap::Word word = unit_of(block) < PageMap::limit() ? PageMap::at(unit_of(block)) : 0;
    return owner_of(word) != nullptr && class_of(word) == c &&
           Slabs<Classes, Spans>::has_carved(*Spans::span_of(block), block);
  }

  const char* verify_list(const BlockList& list, unsigned c) const noexcept { return verify_list(list, c, key()); }
  // Of a list that is linked with another heap's key.
  static const char* verify_list(const BlockList& list, unsigned c, Key linked_with) noexcept {
    std::uint32_t length = 0;
    for (const FreeBlock* block = list.first; block != nullptr; block = next_of(block, linked_with)) {
      if (!is_carved(c, block)) return "T1: a list holds blocks of its class that were carved";
      if (++length > list.count) break;
    }
    return length == list.count ? nullptr : "T2: a list is as long as its room and its shelf say";
  }

  // The data that every call uses comes first; slow paths use the rest. A class's list lies at the heap's address plus
  // the class times kWordStep; the word of the page map for its blocks has this value.
  std::array<List, kClasses> lists_{};
  decltype(offsets_of_slots()) slots_{};
  alignas(kEnd) End end_;
  struct Limit {
    std::int32_t length;  // of the list, where its room ends
    std::uint32_t looks;  // since the list was filled last
  };
  std::array<Limit, kClasses> limits_{};
  Slabs<Classes, Spans> slabs_{ServingOrder::latest_first};
  Borrowed<Classes> borrowed_;
  Claimed<Classes> claimed_;
  heap::Stocks<Classes>* stocks_ = nullptr;
  std::uint32_t refills_left_ = kRefillsUntilLook;  // from slabs, until a look
  Outbox<ThreadHeap> outbox_;
  static_assert(kClasses <= Outbox<ThreadHeap>::kSlots, "blocks of one owner are collected for each class");
  Arrivals<Classes> arrivals_;

 public:
  sync::OwnedLock use;                                // thread_heaps.hpp, H1
  std::atomic<HeapState> state{HeapState::attached};  // changes under the registry's lock
  std::atomic<unsigned> thread{0};                    // the kernel's number of the thread; 0: none
  unsigned process = 0;                               // in which that number was given
  ThreadHeap* next_of_all = nullptr;                  // the registry's; never changes
  ThreadHeap* looked_at = nullptr;                    // the heap at which this thread's next look for blocks begins
  ThreadHeap* next_idle = nullptr;
  unsigned cpu = 0;  // the processor on which it was left, while it is idle

 private:
  // The last member and the longest. Unused rows lie in pages that nobody touches (zeroed.hpp).
  alignas(platform::kApartBytes) Shelf<Classes> shelf_;
};

}  // namespace loam::heap
