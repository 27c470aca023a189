// ThreadHeap: what one thread allocates from, without locks and without atomic instructions.
//   A list of free blocks per class, popped by malloc and pushed by free; behind it a shelf of full lists; behind that
//   the slabs. Blocks of other heaps leave by the outbox, own blocks that others freed come in by the inbox.
//   Cost: allocate 16 instructions and deallocate 21, of which one load each may miss the cache: the block's line.
//   When not: a thread that frees far more than it ever allocates keeps up to kShelvedBytesMax until it ends.
//   T1 each block of heads[c] and of the shelf is of class c and of a slab of this heap, linked and marked with the
//   key. T2 heads[c] is at most kCut times batch_of(c) longer than it was when it was cut or filled last, because
//   room[c]
//      counts down at each free.
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
  static_assert(kClasses * sizeof(void*) <= kHeapAlignment, "the class fits below the owner's address");

 public:
  // The sentinel of threads that have no heap yet: every list is empty, and no word of the page map names it.
  constexpr ThreadHeap() noexcept = default;

  // A heap that serves.
  struct Serving {};
  explicit ThreadHeap(Serving) noexcept : slots_(Classes::small_slots()) {
    for (unsigned c = 0; c < kClasses; ++c) room_[c] = batch_of(c);
  }

  // nullptr: the list is empty, or n is not one that lists serve; then take() or a large block.
  [[gnu::always_inline]] void* pop(std::size_t n) noexcept {
    unsigned c;
    if (n <= Classes::kSmallMax) [[likely]]
      c = slots_[(n + kBlockAlignment - 1) / kBlockAlignment];
    else if (n <= Classes::kMax)
      c = Classes::class_of(n);
    else
      return nullptr;
    return pop_class(c);
  }

  [[gnu::always_inline]] void* pop_class(unsigned c) noexcept {
    FreeBlock* const block = heads_[c];
    if (block == nullptr) [[unlikely]]
      return nullptr;
    heads_[c] = next_of(block, key());
    block->mark = 0;  // or a free of it would look like a second one
    return block;
  }

  // Whether `block`, of the unit with this word, was pushed: it is this heap's and not marked as free.
  // full: the list has grown enough for settle(class).
  struct Pushed {
    bool done, full;
    unsigned size_class;
  };
  [[gnu::always_inline]] Pushed push(FreeBlock* block, PageMap::Word word) noexcept {
    const PageMap::Word offset = word ^ key();
    if (offset >= kClasses * sizeof(void*) || block->mark == key()) [[unlikely]]
      return {false, false, 0};
    const auto c = static_cast<unsigned>(offset / sizeof(void*));
    put_before(block, heads_[c], key());
    heads_[c] = block;
    return {true, --room_[c] < 0, c};
  }

  // Fills the empty list of a class and pops. nullptr: no memory
  void* take(unsigned c) noexcept {
    receive();
    if (heads_[c] == nullptr && !unshelve(c)) {
      BlockList found = slabs_.take(c, key());
      if (found.first == nullptr) {  // what this thread keeps may be what is missing
        give_all();
        found = slabs_.take(c, key());
      }
      if (found.first == nullptr) return nullptr;
      heads_[c] = found.first;
      room_[c] = batch_of(c);
    }
    return pop_class(c);
  }

  // After room_[c] ran out: puts a batch of the list on the shelf if it is longer than that.
  [[gnu::noinline]] void settle(unsigned c) noexcept {
    const std::int32_t batch = batch_of(c);
    FreeBlock* last = heads_[c];
    std::int32_t length = 1;
    while (last != nullptr && length < batch) {
      last = next_of(last, key());
      ++length;
    }
    if (last == nullptr) {
      room_[c] = std::max(batch - length, batch / 2);
      return;
    }
    FreeBlock* const first = heads_[c];
    heads_[c] = next_of(last, key());
    link_to(last, nullptr, key());
    room_[c] += batch;
    shelve(c, first);
  }

  // Takes in what other threads have freed.
  void receive() noexcept {
    inbox_.take_all(key(), [this](const Batch& batch) {
      const auto c = static_cast<unsigned>((PageMap::at(unit_of(batch.first)) ^ key()) / sizeof(void*));
      link_to(batch.last, heads_[c], key());
      heads_[c] = batch.first;
      room_[c] -= static_cast<std::int32_t>(batch.count);
      while (room_[c] < 0) settle(c);
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
      FreeBlock* const list = heads_[c];
      heads_[c] = nullptr;
      room_[c] = batch_of(c);
      slabs_.give(list, c, key());
      while (shelf_[c].lists != 0) give_one(c);
    }
    slabs_.give_whole();
  }

  Key key() const noexcept { return address_of(this); }

  // Whether the block is in one of this heap's lists: what a mark of ours in a block that is freed means for sure.
  bool holds(const FreeBlock* block, unsigned c) const noexcept {
    if (contains(heads_[c], block)) return true;
    for (unsigned i = 0; i < shelf_[c].lists; ++i)
      if (contains(shelf_[c].first[i], block)) return true;
    return contains(Spans::span_of(block)->free_list, block);
  }

  // nullptr, or the invariant that does not hold.
  const char* verify() const noexcept {
    for (unsigned c = 0; c < kClasses; ++c) {
      if (const char* const broken = verify_list(heads_[c], c)) return broken;
      for (unsigned i = 0; i < shelf_[c].lists; ++i)
        if (const char* const broken = verify_list(shelf_[c].first[i], c)) return broken;
    }
    return nullptr;
  }

  std::atomic<HeapState> state{HeapState::attached};  // changes under the registry's lock
  ThreadHeap* next_of_all = nullptr;                  // the registry's
  ThreadHeap* next_idle = nullptr;

 private:
  static constexpr unsigned kShelf = 16;
  static constexpr std::size_t kBatchBytes = 64u << 10, kShelvedBytesMax = 1u << 20;

  struct Shelf {
    std::uint32_t lists;
    FreeBlock* first[kShelf];  // each list has batch_of(class) blocks
  };

  static constexpr std::int32_t batch_of(unsigned c) noexcept {
    return static_cast<std::int32_t>(std::clamp<std::size_t>(kBatchBytes / Classes::bytes_of(c), 4, 2048));
  }
  static constexpr std::size_t batch_bytes(unsigned c) noexcept {
    return static_cast<std::size_t>(batch_of(c)) * Classes::bytes_of(c);
  }

  bool unshelve(unsigned c) noexcept {
    Shelf& shelf = shelf_[c];
    if (shelf.lists == 0) return false;
    heads_[c] = shelf.first[--shelf.lists];
    shelved_bytes_ -= batch_bytes(c);
    room_[c] = batch_of(c);
    return true;
  }

  void shelve(unsigned c, FreeBlock* first) noexcept {
    Shelf& shelf = shelf_[c];
    if (shelf.lists == kShelf || shelved_bytes_ + batch_bytes(c) > kShelvedBytesMax) {
      slabs_.give(first, c, key());
      return;
    }
    shelf.first[shelf.lists++] = first;
    shelved_bytes_ += batch_bytes(c);
  }

  void give_one(unsigned c) noexcept {
    slabs_.give(shelf_[c].first[--shelf_[c].lists], c, key());
    shelved_bytes_ -= batch_bytes(c);
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

  // The two arrays that every call touches, then the table; the rest only behind the door.
  std::array<FreeBlock*, kClasses> heads_{};
  std::array<std::int64_t, kClasses> room_{};  // frees until settle()
  std::remove_cvref_t<decltype(Classes::small_slots())> slots_{};
  std::size_t shelved_bytes_ = 0;
  Slabs<Classes, Spans> slabs_;
  std::array<Shelf, kClasses> shelf_{};
  Outbox<ThreadHeap> outbox_;
  alignas(platform::kApartBytes) Inbox inbox_;
};

}  // namespace loam::heap
