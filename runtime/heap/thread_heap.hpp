// ThreadHeap: what one thread allocates from, without locks and without atomic instructions.
//   A list of free blocks per class, popped by malloc and pushed by free; behind it a shelf of full lists; behind that
//   the slabs. Blocks of other heaps leave by the outbox, own blocks that others freed come in by the inbox.
//   Cost: malloc 15 and free 22 instructions, of which one load each may miss the cache: the block's line.
//   When not: a thread that frees far more than it ever allocates keeps up to kShelvedBytesMax until it ends.
//   T1 each block of a list and of the shelf is of that class and of a slab of this heap, linked with the key.
//   T2 a list grows by at most batch_of(class) before settle() looks at it: its room counts down at each free.
//   T3 a heap is touched by the thread it is attached to, or under the registry's lock while idle (thread_heaps.hpp).
#pragma once

#include "runtime/heap/remote.hpp"
#include "runtime/heap/slabs.hpp"
#include "runtime/platform/cache_line.hpp"

#include <atomic>
#include <type_traits>

namespace loam::heap {

// Aligned so that a word of the page map has room for the class below the owner's address.
inline constexpr std::size_t kHeapAlignment = 4096;

enum class HeapState : std::uint32_t { attached, idle, lost };  // lost: its thread ended in a fork

template <SizeClasses Classes, SpanStore Spans>
class alignas(kHeapAlignment) ThreadHeap {
  static constexpr unsigned kClasses = Classes::kClasses;
  static_assert(kClasses * kWordStep <= kHeapAlignment, "the class fits below the owner's address");

 public:
  // The sentinel of threads that have no heap yet: every list is empty, and no word of the page map names it.
  constexpr ThreadHeap() noexcept = default;

  // A heap that serves.
  struct Serving {};
  explicit ThreadHeap(Serving) noexcept : slots_(offsets_of_slots()) {
    for (unsigned c = 0; c < kClasses; ++c) lists_[c].room = batch_of(c);
  }

  // nullptr: the list is empty, or n is not one that lists serve; then take() or a large block.
  [[gnu::always_inline]] void* pop(std::size_t n) noexcept {
    if (n <= Classes::kSmallMax) [[likely]]
      return pop(at_offset(slots_[(n + kBlockAlignment - 1) / kBlockAlignment]));
    return n <= Classes::kMax ? pop_class(Classes::class_of(n)) : nullptr;
  }

  [[gnu::always_inline]] void* pop_class(unsigned c) noexcept { return pop(lists_[c]); }

  // Takes a block back, of the unit with this word. returns false where the block is not this heap's or marked as free
  [[gnu::always_inline]] bool push(FreeBlock* block, PageMap::Word word) noexcept {
    const PageMap::Word offset = word ^ key();  // of an own block
    if (offset >= sizeof lists_ || block->mark == key()) [[unlikely]]
      return false;
    List& list = at_offset(offset);
    put_before(block, list.head, key());
    list.head = block;
    if (--list.room < 0) [[unlikely]]
      settle(static_cast<unsigned>(offset / sizeof(List)));
    return true;
  }

  // Whether blocks of the unit with this word are what requests of n bytes get, n <= kSmallMax, and this heap's.
  [[gnu::always_inline]] bool serves(PageMap::Word word, std::size_t n) const noexcept {
    return (word ^ key()) == slots_[(n + kBlockAlignment - 1) / kBlockAlignment];
  }

  // Fills the empty list of a class and pops. nullptr: no memory
  void* take(unsigned c) noexcept {
    receive();
    if (lists_[c].head == nullptr && !unshelve(c)) {
      BlockList found = slabs_.take(c, key());
      if (found.first == nullptr) {  // what this thread keeps may be what is missing
        give_all();
        found = slabs_.take(c, key());
      }
      if (found.first == nullptr) return nullptr;
      start_over(c, found.first, found.count);
    }
    return pop_class(c);
  }

  // After lists_[c].room ran out: puts the list on the shelf, unless it is short. How long it is nobody knows, and
  // nobody walks it to find out: blocks that others have freed lie in their caches. A bound is enough.
  [[gnu::noinline]] void settle(unsigned c) noexcept {
    FreeBlock* const first = lists_[c].head;
    const std::uint32_t most = most_[c] + static_cast<std::uint32_t>(batch_of(c) - lists_[c].room);
    start_over(c, nullptr, 0);
    const FreeBlock* block = first;
    for (std::uint32_t left = kShort; block != nullptr && left != 0; --left) block = next_of(block, key());
    if (block == nullptr) {
      start_over(c, first, kShort);
    } else {
      shelve(c, {first, most});
    }
  }

  // Takes in what other threads have freed.
  void receive() noexcept {
    inbox_.take_all(key(), [this](const Batch& batch) {
      const auto c = static_cast<unsigned>((PageMap::at(unit_of(batch.first)) ^ key()) / kWordStep);
      link_to(batch.last, lists_[c].head, key());
      lists_[c].head = batch.first;
      lists_[c].room -= batch.count;
      if (lists_[c].room < 0) settle(c);
    });
  }

  // A block of another heap. send(owner, batch)
  template <class Send>
  void free_remote(ThreadHeap* owner, unsigned c, FreeBlock* block, Send send) noexcept {
    outbox_.put(owner, c, Classes::bytes_of(c), block, send);
  }
  template <class Send>
  void send_all(Send send) noexcept {
    outbox_.flush_all(send);
  }

  Inbox& inbox() noexcept { return inbox_; }

  // Gives every block that nobody uses back to its slab, and whole slabs back to the store.
  void give_all() noexcept {
    receive();
    for (unsigned c = 0; c < kClasses; ++c) {
      FreeBlock* const list = lists_[c].head;
      start_over(c, nullptr, 0);
      slabs_.give(list, c, key());
      while (shelf_[c].lists != 0) give_one(c);
    }
    slabs_.give_whole();
  }

  Key key() const noexcept { return address_of(this); }

  // Whether the block is in one of this heap's lists: what a mark of ours in a block that is freed means for sure.
  bool holds(const FreeBlock* block, unsigned c) const noexcept {
    if (contains(lists_[c].head, block)) return true;
    for (unsigned i = 0; i < shelf_[c].lists; ++i)
      if (contains(shelf_[c].list[i].first, block)) return true;
    return contains(Spans::span_of(block)->free_list, block);
  }

  // nullptr, or the invariant that does not hold.
  const char* verify() const noexcept {
    for (unsigned c = 0; c < kClasses; ++c) {
      if (const char* const broken = verify_list(lists_[c].head, c)) return broken;
      for (unsigned i = 0; i < shelf_[c].lists; ++i)
        if (const char* const broken = verify_list(shelf_[c].list[i].first, c)) return broken;
    }
    return nullptr;
  }

  std::atomic<HeapState> state{HeapState::attached};  // changes under the registry's lock
  std::atomic<unsigned> thread{0};                    // the kernel's number of the thread, for reports; 0: none
  ThreadHeap* next_of_all = nullptr;                  // the registry's
  ThreadHeap* next_idle = nullptr;

 private:
  static constexpr unsigned kShelf = 16;
  static constexpr std::uint32_t kShort = 8;  // not worth a place on the shelf
  static constexpr std::size_t kBatchBytes = 64u << 10, kShelvedBytesMax = 1u << 20;

  struct alignas(kWordStep) List {
    FreeBlock* head;
    std::int64_t room;  // frees until settle()
  };

  struct Shelf {
    std::uint32_t lists;
    BlockList list[kShelf];  // count: at most
  };

  [[gnu::always_inline]] void* pop(List& list) noexcept {
    FreeBlock* const block = list.head;
    if (block == nullptr) [[unlikely]]
      return nullptr;
    list.head = next_of(block, key());
    block->mark = 0;  // or a free of it would look like a second one
    return block;
  }

  // Offsets of the lists that serve requests of 0, 1, 2 ... slots of 16 bytes.
  static constexpr auto offsets_of_slots() noexcept {
    std::array<std::uint16_t, Classes::small_slots().size()> offsets{};
    for (std::size_t slot = 0; slot < offsets.size(); ++slot)
      offsets[slot] = static_cast<std::uint16_t>(Classes::small_slots()[slot] * sizeof(List));
    return offsets;
  }

  static constexpr std::int32_t batch_of(unsigned c) noexcept {
    return static_cast<std::int32_t>(std::clamp<std::size_t>(kBatchBytes / Classes::bytes_of(c), 4, 2048));
  }
  static std::size_t bytes_of(const BlockList& list, unsigned c) noexcept { return list.count * Classes::bytes_of(c); }

  // The list is this one now, of at most so many blocks.
  void start_over(unsigned c, FreeBlock* first, std::uint32_t most) noexcept {
    lists_[c] = {first, batch_of(c)};
    most_[c] = most;
  }

  // The list at an offset in bytes, which is what words of the page map and slots_ hold: nothing is scaled on the way.
  List& at_offset(std::size_t offset) noexcept {
    return *reinterpret_cast<List*>(reinterpret_cast<std::byte*>(lists_.data()) + offset);
  }

  bool unshelve(unsigned c) noexcept {
    Shelf& shelf = shelf_[c];
    if (shelf.lists == 0) return false;
    const BlockList& list = shelf.list[--shelf.lists];
    shelved_bytes_ -= bytes_of(list, c);
    start_over(c, list.first, list.count);
    return true;
  }

  void shelve(unsigned c, const BlockList& list) noexcept {
    Shelf& shelf = shelf_[c];
    if (shelf.lists == kShelf || shelved_bytes_ + bytes_of(list, c) > kShelvedBytesMax) {
      slabs_.give(list.first, c, key());
      return;
    }
    shelf.list[shelf.lists++] = list;
    shelved_bytes_ += bytes_of(list, c);
  }

  void give_one(unsigned c) noexcept {
    const BlockList& list = shelf_[c].list[--shelf_[c].lists];
    shelved_bytes_ -= bytes_of(list, c);
    slabs_.give(list.first, c, key());
  }

  bool contains(const FreeBlock* list, const FreeBlock* block) const noexcept {
    while (list != nullptr && list != block) list = next_of(list, key());
    return list != nullptr;
  }

  const char* verify_list(const FreeBlock* list, unsigned c) const noexcept {
    for (; list != nullptr; list = next_of(list, key())) {
      if (unit_of(list) >= PageMap::limit() || PageMap::at(unit_of(list)) != Slabs<Classes, Spans>::word_of(key(), c))
        return "T1: a list holds blocks of its class and heap";
      const Span& slab = *Spans::span_of(list);
      const std::size_t offset = address_of(list) - address_of(slab.blocks);
      if (offset % Classes::bytes_of(c) != 0 || offset / Classes::bytes_of(c) >= slab.carved)
        return "T1: what a list holds are blocks that were carved";
    }
    return nullptr;
  }

  // What every call touches; the rest only behind the door.
  std::array<List, kClasses> lists_{};
  decltype(offsets_of_slots()) slots_{};
  std::array<std::uint32_t, kClasses> most_{};  // blocks that each list had at most when its room was full
  std::size_t shelved_bytes_ = 0;               // at most
  Slabs<Classes, Spans> slabs_;
  std::array<Shelf, kClasses> shelf_{};
  Outbox<ThreadHeap> outbox_;
  alignas(platform::kApartBytes) Inbox inbox_;
};

}  // namespace loam::heap
