// Heap: an allocator made from a composition of layers. All is static: one heap for each process and composition.
//   A composition names a layer of each kind: Pages, Classes, Spans, Large (concepts in their files); kOrder, the order
//   in which blocks serve again (serving_order.hpp); and hooks:
//     Threads::attached()     a thread has got its heap; may allocate
//     Threads::takes_long_block()   optional: a thread is about to take a long block; may allocate
//     Faults::report(fault, block, class bytes, thread)   [[noreturn]]; a misuse was found; thread: the owner's, or 0
//   Guarded (optional): another heap that takes the calls if guarded() is true (guarded.hpp). guarded() never changes
//     during the process. If it is true, no thread gets a heap of this kind, so every call takes the slow path.
//   Samples (optional, sampled.hpp): when a sample is due, a thread that fills a list puts its heap aside. So its next
//     allocation finds no heap and takes the slow path, which takes the sample and restores the heap.
//   No call on the fast path is indirect. Exports no malloc: runtime/malloc does.
//   Blocks are 16-byte aligned. Functions that allocate return nullptr if the system has no memory, or if bytes exceed
//   PTRDIFF_MAX. None changes errno.
#pragma once

#include "runtime/heap/fault.hpp"
#include "runtime/heap/large.hpp"
#include "runtime/heap/statistics.hpp"
#include "runtime/heap/thread_heaps.hpp"
#include "runtime/heap/thread_life.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace loam::heap {

template <class C>
class Lending;

// The heap for threads that have none yet. All compositions share one, because the dynamic linker writes to it and so
// touches its page.
template <class ThreadHeap>
inline constinit ThreadHeap nobodys_heap{};

template <class C>
struct Heap {
  using Pages = typename C::Pages;
  using Classes = typename C::Classes;
  using Spans = typename C::Spans;
  using Large = typename C::Large;
  using Threads = ThreadHeaps<Classes, Spans, Pages>;
  using ThreadHeap = typename Threads::Heap;

  [[gnu::always_inline]] static void* allocate(std::size_t bytes) noexcept {
    if (void* const block = current->pop(bytes); block != nullptr) [[likely]]
      return block;
    return allocate_unlisted(bytes);
  }

  // The two halves of allocate(), for those that put something between them. Of a list: nullptr where it has no block.
  [[gnu::always_inline]] static void* allocate_listed(std::size_t bytes) noexcept { return current->pop(bytes); }
  // What no list has.
  [[gnu::noinline]] static void* allocate_unlisted(std::size_t bytes) noexcept {
    if (current == &sentinel) [[unlikely]]
      return allocate_first(bytes);
    if (bytes > taken_max) return allocate_untaken(bytes);
    return take(Classes::class_of(bytes));
  }

  static void* allocate_zeroed(std::size_t bytes) noexcept {
    if (bytes > Classes::kMax) {
      if constexpr (kGuardable)
        if (stands_aside()) return C::Guarded::allocate_zeroed(bytes);
      const auto taken = allocate_large(1, bytes);
      if (taken.block != nullptr && !taken.zero) Large::zero(taken.block, bytes);
      return taken.block;
    }
    void* const block = allocate(bytes);
    if (block != nullptr) std::memset(block, 0, bytes);
    return block;
  }

  // alignment: a power of two, of any size.
  static void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
    if (alignment <= kBlockAlignment) return allocate(bytes);
    if (bytes > kBytesMax || alignment > kBytesMax) return nullptr;
    const unsigned c = Classes::class_aligned(alignment, bytes);
    if (c == Classes::kClasses) return allocate_large(alignment, bytes).block;
    if (void* const block = current->pop_class(c); block != nullptr) return block;
    if constexpr (kGuardable)
      if (stands_aside()) return C::Guarded::allocate_aligned(alignment, bytes);
    return take_first(c);
  }

  [[gnu::always_inline]] static void deallocate(void* block) noexcept {
    const std::uintptr_t unit = unit_of(block);
    PageMap::Word word = 0;
    if (unit < PageMap::limit()) [[likely]] {
      word = PageMap::at(unit);
      if (current->push(static_cast<FreeBlock*>(block), word, Threads::send)) [[likely]]
        return;
    }
    deallocate_elsewhere(block, word);
  }

  // For a heap in front of this one: a block of a slab that is known not to be free.
  [[gnu::always_inline]] static void deallocate_held(void* block) noexcept {
    const PageMap::Word word = PageMap::at(unit_of(block));
    if (!current->push_unmarked(static_cast<FreeBlock*>(block), word, Threads::send)) [[unlikely]]
      deallocate_elsewhere(block, word);
  }

  // bytes: what the block was asked for with, by allocate().
  static void deallocate_sized(void* block, std::size_t bytes) noexcept {
    const std::uintptr_t unit = unit_of(block);
    if (bytes <= Classes::kSmallMax && unit < PageMap::limit() && current->serves(PageMap::at(unit), bytes)) [[likely]]
      return deallocate(block);
    deallocate_sized_slowly(block, bytes);
  }

  // block: not nullptr; bytes > 0. nullptr: the block stays as it is.
  static void* reallocate(void* block, std::size_t bytes) noexcept {
    if constexpr (kGuardable)
      if (stands_aside()) return C::Guarded::reallocate(block, bytes);
    const PageMap::Word word = word_of(block);
    const std::size_t had = usable_bytes(block, word);
    if (bytes <= had && bytes >= had / 2 && had <= Classes::kMax) {
      if constexpr (kSampling)
        if (word == 0) C::Samples::resize(block, bytes);
      return block;
    }
    if (Large::is_large(word) && bytes > Classes::kMax && bytes <= kBytesMax)
      if (void* const resized = Large::resize(word, bytes)) return resized;
    void* moved = allocate(bytes);
    if (moved == nullptr) return bytes <= had ? block : nullptr;
    const PageMap::Word target = Large::is_large(word) ? word_of(moved) : 0;
    if (!Large::is_large(target) || !Large::move(word, target, bytes, moved))
      std::memcpy(moved, block, std::min(had, bytes));
    deallocate(block);
    return moved;
  }

  static std::size_t usable_bytes(const void* block) noexcept {
    if constexpr (kGuardable)
      if (stands_aside()) return C::Guarded::usable_bytes(block);
    return usable_bytes(block, word_of(block));
  }

  // The page map's word of the unit in which the address lies; 0: no block of this heap lies there.
  static PageMap::Word word_of(const void* address) noexcept {
    const std::uintptr_t unit = unit_of(address);
    return unit < PageMap::limit() ? PageMap::at(unit) : 0;
  }
  // Whether blocks of a class lie in units with this word.
  static bool is_slab(PageMap::Word word) noexcept { return word != 0 && !Large::is_large(word); }
  // Of a slab's word.
  static std::size_t class_bytes(PageMap::Word word) noexcept { return Classes::bytes_of(class_of(word)); }

  // Gives the calling thread a heap if it has none. returns false if there is no memory, or if the thread's end has gone
  // so far that nobody would take the heap back.
  static bool attach() noexcept { return current != &sentinel || attach_first(); }
  // The same, but for a thread whose end has begun only what it has.
  static bool attach_to_keep() noexcept { return current != &sentinel || (!life.is_ending() && attach_first()); }

  // Hands the calling thread's heap over. From now on no free of this thread gets a heap. An allocation gets one, if it
  // is not `last`: then nobody calls this again, and each allocation hands over the heap that it has used.
  static void thread_exit(bool last = false) noexcept {
    if constexpr (kGuardable)
      if (stands_aside()) return C::Guarded::thread_exit(last);
    life.end(last);
    take_up();
    ThreadHeap* const heap = current;
    if (heap == &sentinel) return;
    current = &sentinel;
    Threads::detach(heap);
    Spans::thread_ends();
  }

  // From now on some blocks are samples (sampled.hpp). Before there is a second thread.
  static void begin_samples() noexcept { taken_max = 0; }

  // At the end of a process: where guarded, a last look at freed blocks.
  static void check_what_waits() noexcept {
    if constexpr (kGuardable)
      if (stands_aside()) C::Guarded::check_what_waits();
    if constexpr (kSampling) C::Samples::check_what_is_held();
  }

  // Returns free memory to the system that was not used since the last call. For the helper thread.
  static void give_what_rests() noexcept { Spans::decay_if_due(~0u); }

  // Returns all free memory to the system. returns whether there was any
  static bool trim() noexcept {
    if constexpr (kGuardable)
      if (stands_aside()) return C::Guarded::trim();
    give_what_is_kept();
    return Spans::trim();
  }

  // There is no code before a fork, nor in the parent: so no fork waits for a lock of the heap, and no thread for a
  // fork. The child repairs what other threads of the parent left unfinished.
  static void after_fork_in_child() noexcept {
    if constexpr (kGuardable) C::Guarded::mend_in_child();
    if constexpr (kSampling) C::Samples::mend_in_child();
    Threads::mend_in_child(own());
    Large::mend_in_child();
    Spans::mend_in_child();
    any_lost_ = true;
  }

  // The calling thread's heap; nullptr where it has none.
  static ThreadHeap* own() noexcept {
    if constexpr (kGuardable)
      if (stands_aside()) return C::Guarded::own();
    return current == &sentinel ? aside : current;
  }

  static Statistics statistics() noexcept { return statistics_of<Spans, Large, Threads>(); }

  // nullptr, or the name of an invariant that does not hold. Only while no other thread allocates or frees.
  static const char* verify() noexcept {
    // In the child of a fork, slabs of other threads are left out: these threads may have been changing them.
    const char* broken = Spans::verify([](const Span& span) -> const char* {
      if (span.kind == SpanKind::none) return any_lost_ ? nullptr : "S2: a used unit belongs to a span";
      if (span.kind != SpanKind::slab) return nullptr;
      const PageMap::Word word = PageMap::at(unit_of(span.blocks));
      if (!is_slab(word)) return any_lost_ ? nullptr : "B3: the page map names owner and class";
      return is_lost(*owner_of(word)) ? nullptr : Slabs<Classes, Spans>::verify(span, owner_of(word)->key());
    });
    Threads::for_each([&broken](const ThreadHeap& heap) {
      if (broken == nullptr && !is_lost(heap)) broken = heap.verify();
    });
    if constexpr (kGuardable)
      if (broken == nullptr) broken = C::Guarded::verify();
    return broken;
  }

  // Whether the address lies in a slab, or in the first unit of a large block.
  static bool covers(const void* address) noexcept { return word_of(address) != 0; }

  // Whether a block begins there, in use or free. The address is covered.
  static bool is_block(const void* address) noexcept {
    const PageMap::Word word = word_of(address);
    if (Large::is_large(word)) return Large::begins_at(word, address);
    return Slabs<Classes, Spans>::has_carved(*Spans::span_of(address), address);
  }

  // Whether the second word of a block is a mark. A user may have written the same value by accident.
  static bool is_marked(const void* block) noexcept {
    const PageMap::Word word = word_of(block);
    return is_slab(word) && static_cast<const FreeBlock*>(block)->mark == owner_of(word)->key();
  }

  [[noreturn, gnu::cold]] static void fault(Fault fault, const void* block) noexcept {
    const PageMap::Word word = word_of(block);
    const bool slab = is_slab(word);
    C::Faults::report(fault, block,
                      slab        ? Classes::bytes_of(class_of(word))
                      : word != 0 ? Large::usable_bytes(word)
                                  : 0,
                      slab ? owner_of(word)->thread.load(std::memory_order_relaxed) : 0);
  }

  static constexpr std::size_t kBytesMax = std::numeric_limits<std::ptrdiff_t>::max();

 private:
  friend class Lending<C>;

  static constexpr bool kGuardable = requires { typename C::Guarded; };
  static constexpr bool kSampling = requires { typename C::Samples; };

  [[gnu::cold, gnu::noinline]] static bool attach_first() noexcept {
    if (take_up()) return true;
    if (life.is_over()) return false;
    ThreadHeap* const heap = Threads::attach(C::kOrder);
    if (heap == nullptr) return false;
    current = heap;
    C::Threads::attached();
    return true;
  }

  // Whether every allocation and free has to come through the functions above.
  static bool watches() noexcept {
    if constexpr (kGuardable)
      if (C::guarded()) return true;
    return kSampling && taken_max == 0;
  }

  // Whether Guarded takes the call. Asked only where the calling thread has no heap of this one, as none ever has then.
  static bool stands_aside() noexcept { return current == &sentinel && C::guarded(); }

  static void put_aside() noexcept {
    aside = current;
    current = &sentinel;
  }
  // returns whether the thread had put its heap aside
  static bool take_up() noexcept {
    if constexpr (!kSampling) return false;
    if (aside == nullptr) return false;
    current = aside;
    aside = nullptr;
    return true;
  }

  static bool is_lost(const ThreadHeap& heap) noexcept {
    return heap.state.load(std::memory_order_relaxed) == HeapState::lost;
  }

  static ThreadHeap* owner_of(PageMap::Word word) noexcept { return ThreadHeap::owner_of(word); }
  static unsigned class_of(PageMap::Word word) noexcept { return ThreadHeap::class_of(word); }

  static std::size_t usable_bytes(const void* block, PageMap::Word word) noexcept {
    if (Large::is_large(word)) return Large::usable_bytes(word);
    if (word == 0) {
      if constexpr (kSampling)
        if (C::Samples::covers(block)) return C::Samples::bytes(block);
      fault(Fault::foreign, block);
    }
    return class_bytes(word);
  }

  static void* allocate_untaken(std::size_t bytes) noexcept {
    if (!kSampling || bytes > Classes::kMax) return allocate_large(1, bytes).block;
    return take_between_samples(bytes);
  }
  [[gnu::cold, gnu::noinline]] static void* take_between_samples(std::size_t bytes) noexcept {
    void* const block = take(Classes::class_of(bytes));
    if constexpr (kSampling)
      if (C::Samples::is_due()) put_aside();
    return block;
  }
  // For a thread that has no heap, or has put it aside.
  [[gnu::noinline]] static void* allocate_first(std::size_t bytes) noexcept {
    if constexpr (kGuardable)
      if (C::guarded()) return C::Guarded::allocate(bytes);
    if constexpr (kSampling)
      if (take_up()) {
        void* const sample = C::Samples::take(bytes);
        return sample != nullptr ? sample : allocate(bytes);
      }
    return attach_and_allocate(bytes);
  }
  [[gnu::noinline]] static void* attach_and_allocate(std::size_t bytes) noexcept {
    if (bytes > Classes::kMax) return allocate_large(1, bytes).block;
    return take_first(Classes::class_of(bytes));
  }
  static void* take_first(unsigned c) noexcept {
    if (attach()) return take(c);
    return life.is_over() ? take_in_passing(c) : nullptr;
  }
  // For a thread whose heap nobody would take back.
  [[gnu::cold, gnu::noinline]] static void* take_in_passing(unsigned c) noexcept {
    ThreadHeap* const heap = Threads::attach(C::kOrder);
    if (heap == nullptr) return nullptr;
    current = heap;
    void* const block = take(c);
    current = &sentinel;
    Threads::detach(heap);
    return block;
  }

  [[gnu::noinline]] static typename Large::Taken allocate_large(std::size_t alignment, std::size_t bytes) noexcept {
    if constexpr (kGuardable)
      if (stands_aside()) return {C::Guarded::allocate_aligned(alignment, bytes), false};
    if (bytes > kBytesMax) return {nullptr, false};
    if constexpr (requires { C::Threads::takes_long_block(); }) C::Threads::takes_long_block();
    auto taken = Large::allocate(alignment, bytes);
    if (taken.block == nullptr) {
      give_what_is_kept();
      taken = Large::allocate(alignment, bytes);
    }
    return taken;
  }

  // Blocks that this thread keeps, and heaps of ended threads, may provide the missing memory.
  static void give_what_is_kept() noexcept {
    take_up();
    if (current != &sentinel) {
      current->give_all(Threads::send);
      current->send_all(Threads::send);
    }
    Threads::tend_all();
  }

  [[gnu::noinline]] static void* take(unsigned c) noexcept {
    if (void* const block = current->take(c, Threads::send, Threads::neglectful); block != nullptr) [[likely]]
      return block;
    give_what_is_kept();
    return current->take(c, Threads::send, Threads::neglectful);
  }

  // Blocks of others mostly, of which one after the other goes the same way.
  [[gnu::noinline]] static void deallocate_elsewhere(void* block, PageMap::Word word) noexcept {
    if (current == &sentinel) [[unlikely]]
      return deallocate_first(block, word);
    if (current->push_away(static_cast<FreeBlock*>(block), word, Threads::send)) [[likely]]
      return;
    deallocate_slowly(block, word);
  }

  // The first of a batch, and blocks that are borrowed: apart from deallocate_rarely, whose calls to others would have
  // it save registers, 21 instructions for each block of 16 KiB.
  [[gnu::noinline]] static void deallocate_slowly(void* block, PageMap::Word word) noexcept {
    if (is_slab(word)) [[likely]] {
      ThreadHeap* const owner = owner_of(word);
      auto* const freed = static_cast<FreeBlock*>(block);
      if (owner != current && freed->mark != owner->key() && address_of(block) % kBlockAlignment == 0) [[likely]]
        return current->free_remote(freed, word, Threads::send);
    }
    deallocate_rarely(block, word);
  }

  // For a thread that has no heap.
  [[gnu::noinline]] static void deallocate_first(void* block, PageMap::Word word) noexcept {
    if constexpr (kGuardable)
      if (C::guarded()) return C::Guarded::deallocate(block, word);
    if constexpr (kSampling)
      if (aside != nullptr) return deallocate_meanwhile(block);
    deallocate_rarely(block, word);
  }

  // While a sample is due, which is of an allocation.
  [[gnu::cold, gnu::noinline]] static void deallocate_meanwhile(void* block) noexcept {
    take_up();
    deallocate(block);
    put_aside();
  }

  // The cases that need a decision, and large blocks.
  [[gnu::noinline]] static void deallocate_rarely(void* block, PageMap::Word word) noexcept {
    if (block == nullptr) return;
    if (word == 0) return deallocate_foreign(block);
    if (Large::is_large(word)) {
      if (!Large::begins_at(word, block)) fault(Fault::interior, block);
      return Large::deallocate(word);
    }
    ThreadHeap* const owner = owner_of(word);
    const unsigned c = class_of(word);
    auto* const freed = static_cast<FreeBlock*>(block);
    if (address_of(block) % kBlockAlignment != 0) fault(Fault::interior, block);
    if (freed->mark == owner->key()) {
      if ((owner == current && owner->holds(freed, c)) || is_listed(freed, word)) fault(Fault::double_free, block);
      freed->mark = 0;  // the user's own word, by accident
    }
    if (owner == current) return deallocate(block);
    if (current == &sentinel && life.frees_much() && attach())
      return deallocate(block);  // the heap that it gets may be the owner
    if (current != &sentinel) return current->free_remote(freed, word, Threads::send);
    put_before(freed, nullptr, owner->key());
    Threads::send(word, {freed, 1});
  }

  [[gnu::cold, gnu::noinline]] static void deallocate_foreign(void* block) noexcept {
    if constexpr (kSampling)
      if (C::Samples::covers(block)) return C::Samples::give(block);
    fault(Fault::foreign, block);
  }

  // Whether a block with its owner's mark, in a unit with this word, is in the list of any heap. Then its link ends the
  // list, or leads to a block of the class that is marked as well. A user's block is very unlikely to have such
  // contents.
  static bool is_listed(const FreeBlock* block, PageMap::Word word) noexcept {
    bool found = false;
    Threads::for_each([block, word, &found](const ThreadHeap& heap) {
      const FreeBlock* const next = next_of(block, heap.key());
      found = found || next == nullptr || is_free_block(next, class_of(word));
    });
    return found;
  }
  static bool is_free_block(const FreeBlock* block, unsigned c) noexcept {
    if (address_of(block) % kBlockAlignment != 0) return false;
    const PageMap::Word word = word_of(block);
    return is_slab(word) && class_of(word) == c && block->mark == owner_of(word)->key();
  }

  [[gnu::noinline]] static void deallocate_sized_slowly(void* block, std::size_t bytes) noexcept {
    if constexpr (kGuardable)
      if (stands_aside()) return C::Guarded::deallocate_sized(block, bytes);
    const PageMap::Word word = word_of(block);
    const bool slab = is_slab(word);
    if constexpr (kSampling)
      if (word == 0 && C::Samples::covers(block)) return C::Samples::give_sized(block, bytes);
    if (slab && (bytes > Classes::kMax || class_of(word) != Classes::class_of(bytes))) fault(Fault::wrong_size, block);
    deallocate(block);
  }

  static constexpr ThreadHeap& sentinel = nobodys_heap<ThreadHeap>;
  static inline constinit thread_local ThreadHeap* current = &sentinel;
  static inline constinit thread_local ThreadHeap* aside = nullptr;  // what current was: then current is the sentinel
  static inline constinit thread_local ThreadLife life{};            // the calling thread's
  // Requests up to this are served from a list that is filled for them. 0 once samples have begun, so that the
  // comparison that finds long blocks finds them as well.
  static inline constinit std::size_t taken_max = Classes::kMax;
  static inline constinit bool any_lost_ = false;  // this is the child of a fork
};

}  // namespace loam::heap
