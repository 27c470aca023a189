// Guarded: a heap with checks that cost time, for LOAM_MALLOC_HARDENED=1.
//   Blocks   Each block is some bytes longer than requested. Behind the program's bytes are up to 32 bytes of padding,
//            and at the end of the block a seal: its length, mixed with its address and a secret. A block of 256 KiB or
//            more has an inaccessible page behind it; of the shorter blocks without a size class, one in 16 has such a
//            page.
//   Frees    A freed block, its seal included, is zeroed, and waits in a queue of the thread that freed it, until 32 to
//            95 further frees. When 96 blocks wait, all but a random number of 32 to 63 leave; blocks over 256 bytes
//            leave before they have 64 KiB together. Blocks leave in the order in which they came, and the second heap
//            hands out blocks by address (serving_order.hpp). With another order a program would walk its memory in
//            that order, more so with each round, and cache misses would cost more than all checks (ADR 0017).
//
//   Found: double frees, invalid frees and pointers into blocks, always (they have no seal; by chance 1 in 2^47 does);
//   writes of 1 to 32 bytes past the end, when the block is freed or resized (padding, seal; one byte of another value
//   is enough); a free with another size, always; writes to a freed block while it waits, when it leaves, in the first
//   and last 512 bytes and 512 random ones; the same at the end of the process, in the queue of the main thread; a
//   write beyond a block with a guard page, at once. The time at which a block serves again cannot be predicted.
//
//   Source: seals as in scudo's checksums; zeroing, delay and guard pages as in scudo and hardened_malloc.
//
//   Cost: some 200 instructions for each pair of malloc and free; above 256 bytes a memset; cache lines of waiting
//   blocks; for a block over 2 MiB, system calls.
//   When not: programs that are known to be correct and need speed.
//
//   G1 a block has its seal at its end exactly while the program holds it.
//   G2 a block that waits is zero in full, and waits in one place of one queue.
#pragma once

#include "runtime/base/bits.hpp"
#include "runtime/heap/closed_blocks.hpp"
#include "runtime/heap/fault.hpp"
#include "runtime/heap/geometry.hpp"
#include "runtime/heap/padding.hpp"
#include "runtime/heap/page_map.hpp"
#include "runtime/heap/seals.hpp"
#include "runtime/heap/waiting_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace loam::heap {

// Inner: a Heap that nothing else allocates from.
template <class Inner>
class Guarded {
 public:
  // Not inlined: these calls are in the slow paths of the default heap, which should stay short.
  [[gnu::noinline]] static void* allocate(std::size_t bytes) noexcept {
    if (bytes > Classes::kMax - kSealBytes) [[unlikely]]
      return allocate_long(bytes, false);
    const std::size_t sealed = bytes + kSealBytes;
    void* const block = Inner::allocate_listed(sealed);
    if (block == nullptr) [[unlikely]]
      return allocate_slowly(bytes);
    const Frame frame = short_frame(Classes::bytes_of(Classes::class_of(sealed)));
    forget(block);
    pad_new(static_cast<std::byte*>(block) + bytes, frame.room - bytes);
    put_seal(block, bytes, frame);
    return block;
  }

  // bytes: more than the longest class has. Pages that are zero already are not touched.
  static void* allocate_zeroed(std::size_t bytes) noexcept { return allocate_long(bytes, true); }

  static void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
    if (bytes > kBytesMax) return nullptr;
    const std::size_t sealed = bytes + kSealBytes;
    const bool is_long = Classes::class_aligned(alignment, sealed) == Classes::kClasses;
    const std::size_t wanted = is_long ? sealed + guard_bytes() : sealed;
    return from_the_heap([=] { return Inner::allocate_aligned(alignment, wanted); }, bytes);
  }

  // word: of the block's unit
  [[gnu::noinline]] static void deallocate(void* block, PageMap::Word word) noexcept {
    retire(block, word, [](std::size_t) { return true; });
  }

  [[gnu::noinline]] static void deallocate_sized(void* block, std::size_t bytes) noexcept {
    retire(block, Inner::word_of(block), [bytes](std::size_t had) { return had == bytes; });
  }

  [[gnu::noinline]] static void* reallocate(void* block, std::size_t bytes) noexcept {
    const Frame frame = frame_at(block);
    const std::size_t had = checked_bytes(block, frame);
    if (bytes <= frame.room && bytes >= frame.room / 2) {
      if (bytes < had) std::memset(static_cast<std::byte*>(block) + bytes, 0, had - bytes);
      close(block, bytes, frame);
      return block;
    }
    if (void* const grown = grow(block, bytes, frame); grown != nullptr) return grown;
    void* const moved = allocate(bytes);
    if (moved == nullptr) return nullptr;
    std::memcpy(moved, block, std::min(had, bytes));
    deallocate(block, Inner::word_of(block));
    return moved;
  }

  // Exactly what was asked for: behind it lies the padding.
  static std::size_t usable_bytes(const void* block) noexcept { return checked_bytes(block, frame_at(block)); }

  static void thread_exit(bool last) noexcept {
    release_all();
    if (WaitingBlocks* const own = std::exchange(waiting_, nullptr); own != nullptr)
      Inner::Pages::unmap(reinterpret_cast<std::byte*>(own), kQueueBytes);
    Inner::thread_exit(last);
  }
  static auto* own() noexcept { return Inner::own(); }

  // Checks this thread's waiting blocks and the free long blocks, at the end of a process, because they would not be
  // checked otherwise: 96 and 16 blocks, at most 1536 bytes of each. They stay where they are.
  static void check_what_waits() noexcept {
    if (waiting_ != nullptr) waiting_->for_each([](Waiting block) { expect_zero_words(block); });
    closed_.for_each([](const ClosedBlocks::Block& block) {
      expect_zero({static_cast<std::uint64_t*>(block.start), frame_of(block.start).room / 16 * 16});
    });
  }

  static void mend_in_child() noexcept { closed_.mend_in_child(); }

  // What other threads have freed goes on waiting.
  static bool trim() noexcept {
    release_all();
    closed_.give_all(open_and_give);
    return Inner::trim();
  }

  // nullptr, or the invariant that does not hold.
  static const char* verify() noexcept {
    bool are_zero = true;
    if (waiting_ != nullptr)
      waiting_->for_each([&are_zero](Waiting block) { are_zero = are_zero && is_zero(block.words, 2); });
    if (!are_zero) return "G2: a block that waits is zero";
    if (const char* const broken = waiting_ != nullptr ? waiting_->verify() : nullptr; broken != nullptr) return broken;
    return closed_.verify([](const ClosedBlocks::Block& block) {
      return is_zero(static_cast<const std::uint64_t*>(block.start), frame_of(block.start).room / 16 * 2);
    });
  }

 private:
  using Classes = typename Inner::Classes;
  using Waiting = WaitingBlocks::Block;

  static constexpr std::size_t kSealBytes = sizeof(std::uint64_t);
  // What a guard page takes of a block, wherever the block ends in its last page.
  static std::size_t guard_bytes() noexcept { return 2 * platform::page_bytes(); }
  // Usable bytes from which on every block has one; of the shorter long ones one in so many places.
  static constexpr std::size_t kAlwaysGuarded = std::size_t{256} << 10;
  static constexpr unsigned kOneIn = 16;
  static constexpr std::size_t kBytesMax = Inner::kBytesMax - kSealBytes - 2 * platform::kPageBytesMax;
  static constexpr std::size_t kLookedAt = 64;  // words at each of three places of a block that has waited
  static_assert(Classes::kMax <= WaitingBlocks::kBytesMax && kZeroedMax <= WaitingBlocks::kShortMax);
  static constexpr std::size_t kQueueBytes = base::round_up(sizeof(WaitingBlocks), platform::kPageBytes);

  // ---- the parts of a block

  // The program's room, the seal, and the guard page of a long one.
  struct Frame {
    std::size_t room;  // in front of the seal
    std::size_t usable;
    bool has_page = false;
  };
  static Frame short_frame(std::size_t usable) noexcept { return {.room = usable - kSealBytes, .usable = usable}; }
  static Frame frame_of(const void* block) noexcept {
    const PageMap::Word word = Inner::word_of(block);
    if (Inner::is_slab(word)) return short_frame(Inner::class_bytes(word));
    const std::size_t usable = Inner::usable_bytes(block);
    const std::size_t guarded = usable - (address_of(block) + usable) % platform::page_bytes() - platform::page_bytes();
    // For shorter blocks their address decides, so the answer stays the same while the block exists.
    const bool has_page = usable >= kAlwaysGuarded || base::mix(address_of(block) ^ seals_.secret()) % kOneIn == 0;
    return {guarded - kSealBytes, usable, has_page};
  }
  // The block at a pointer that the program passes. Ends the program if no block begins there, as far as the page map
  // knows.
  static Frame frame_at(const void* block) noexcept {
    const PageMap::Word word = Inner::word_of(block);
    if (Inner::is_slab(word)) return short_frame_at(block, word);
    if (word == 0 || !Inner::is_block(block)) [[unlikely]]
      end_for(block);
    return frame_of(block);
  }
  // The same in a slab, whose word this is: what is looked at is in it too.
  static Frame short_frame_at(const void* block, PageMap::Word word) noexcept {
    const Frame frame = short_frame(Inner::class_bytes(word));
    const std::uintptr_t seal = address_of(block) + frame.room;
    if ((seal ^ address_of(block)) >= kUnitBytes && Inner::word_of(reinterpret_cast<void*>(seal)) != word) [[unlikely]]
      end_for(block);
    return frame;
  }
  // returns false: the system refused, and the page stays as it was
  [[gnu::cold, gnu::noinline]] static bool guard(void* block, const Frame& frame, bool open) noexcept {
    return Inner::Pages::protect(static_cast<std::byte*>(block) + frame.room + kSealBytes, platform::page_bytes(),
                                 open);
  }

  // The heap's own words.
  static void forget(void* block) noexcept { std::memset(block, 0, kBlockAlignment); }

  static void put_seal(void* block, std::size_t bytes, const Frame& frame) noexcept {
    const std::uint64_t seal = seals_.of(block, bytes);
    std::memcpy(static_cast<std::byte*>(block) + frame.room, &seal, sizeof seal);
  }
  // Padding and seal behind `bytes`, which stay as they are.
  static void close(void* block, std::size_t bytes, const Frame& frame) noexcept {
    pad(static_cast<std::byte*>(block) + bytes, frame.room - bytes);
    put_seal(block, bytes, frame);
  }

  // The requested size. Ends the program if it does not hold the block, or has written behind it.
  static std::size_t checked_bytes(const void* block, const Frame& frame) noexcept {
    const auto* const begin = static_cast<const std::byte*>(block);
    std::uint64_t seal;
    std::memcpy(&seal, begin + frame.room, sizeof seal);
    const std::size_t bytes = seals_.opened(seal, block);
    if (bytes > frame.room || !is_padded(begin + bytes, frame.room - bytes)) [[unlikely]]
      end_for(block);
    return bytes;
  }

  // Ends the program for a pointer at which nothing is sealed, or the padding is broken.
  [[noreturn, gnu::cold, gnu::noinline]] static void end_for(const void* block) noexcept {
    Inner::fault(!Inner::covers(block)     ? Fault::foreign
                 : !Inner::is_block(block) ? Fault::interior
                 : is_free(block)          ? Fault::double_free
                                           : Fault::write_past_end,
                 block);
  }
  // Whether the contents of a block are those of a free one: zero, except for the words of the heap's lists.
  static bool is_free(const void* block) noexcept {
    const auto* const words = static_cast<const std::uint64_t*>(block);
    const Frame frame = frame_of(block);
    const std::size_t rest = (frame.room + kSealBytes) / sizeof *words - 2;
    return (Inner::is_marked(block) || is_zero(words, 2)) && (rest == 0 || is_zero(words + 2, rest));
  }

  // ---- into the program's hands

  // The heap's lists have none.
  [[gnu::noinline]] static void* allocate_slowly(std::size_t bytes) noexcept {
    return from_the_heap([=] { return Inner::allocate(bytes + kSealBytes); }, bytes);
  }
  // A block that waits, which is zero, or one of the heap's.
  [[gnu::cold, gnu::noinline]] static void* allocate_long(std::size_t bytes, bool zeroed) noexcept {
    if (bytes > kBytesMax) return nullptr;
    const std::size_t wanted = bytes + kSealBytes + guard_bytes();
    const auto kept = closed_.take(wanted);
    if (kept.start == nullptr)
      return from_the_heap([=] { return zeroed ? Inner::allocate_zeroed(wanted) : Inner::allocate(wanted); }, bytes);
    const Frame frame = frame_of(kept.start);
    expect_zero({static_cast<std::uint64_t*>(kept.start), frame.room / 16 * 16});
    return hand_out(kept.start, bytes, frame);
  }
  // What waits may be what is missing.
  template <class Allocate>
  static void* from_the_heap(Allocate allocate_inner, std::size_t bytes) noexcept {
    void* block = allocate_inner();
    if (block == nullptr && closed_.give_all(open_and_give)) block = allocate_inner();
    return block == nullptr ? nullptr : admit(block, bytes);
  }
  // If the page cannot be opened, the block is lost: its next user would fault on that page.
  static void open_and_give(void* block) noexcept {
    if (guard(block, frame_of(block), true)) Inner::deallocate(block);
  }

  // The first block of every thread comes this way.
  [[gnu::noinline]] static void* admit(void* block, std::size_t bytes) noexcept {
    seals_.draw_secret_once();
    const Frame frame = frame_of(block);
    if (frame.has_page) guard(block, frame, false);  // or the seal alone guards it
    return hand_out(block, bytes, frame);
  }

  static void* hand_out(void* block, std::size_t bytes, const Frame& frame) noexcept {
    forget(block);
    close(block, bytes, frame);
    return block;
  }

  // Makes a long block longer without copying it. returns where it lies now; nullptr: it is as it was
  static void* grow(void* block, std::size_t bytes, const Frame& frame) noexcept {
    const PageMap::Word word = Inner::word_of(block);
    if (Inner::is_slab(word) || bytes <= frame.room || bytes > kBytesMax) return nullptr;
    return grow_long(block, word, bytes, frame);
  }
  [[gnu::cold, gnu::noinline]] static void* grow_long(void* block, PageMap::Word word, std::size_t bytes,
                                                      const Frame& frame) noexcept {
    if (frame.has_page && !guard(block, frame, true)) return nullptr;
    void* const grown = Inner::Large::resize(word, bytes + kSealBytes + guard_bytes());
    if (grown == nullptr) {
      if (frame.has_page) guard(block, frame, false);
      return nullptr;
    }
    std::memset(static_cast<std::byte*>(grown) + frame.room, 0, kSealBytes);
    const Frame longer = frame_of(grown);
    if (longer.has_page) guard(grown, longer, false);
    close(grown, bytes, longer);
    return grown;
  }

  // ---- out of the program's hands

  // fits(bytes): whether the program may free it as a block that it asked so many bytes for.
  //   The seal is not removed by an atomic exchange, which would wait for all earlier stores. So if two threads free a
  //   block at the same instant, both may pass here. The check when the block leaves the queue, or the second heap,
  //   finds this double free.
  template <class Fits>
  [[gnu::always_inline]] static void retire(void* block, PageMap::Word word, Fits fits) noexcept {
    if (!Inner::is_slab(word)) [[unlikely]]
      return retire_long(block, fits);
    const Frame frame = short_frame_at(block, word);
    const std::size_t usable = frame.usable, bytes = checked_bytes(block, frame);
    if (!fits(bytes)) [[unlikely]]
      Inner::fault(Fault::wrong_size, block);
    if (usable > kZeroedMax) [[unlikely]]
      return clear(block, bytes, usable);
    // The bytes behind the padding too, because they may have contents of an earlier block.
    zero(static_cast<std::byte*>(block), usable);
    wait({static_cast<std::uint64_t*>(block), bytes});
  }
  [[gnu::noinline]] static void clear(void* block, std::size_t bytes, std::size_t usable) noexcept {
    std::memset(block, 0, usable);
    wait_long({static_cast<std::uint64_t*>(block), bytes});
  }

  template <class Fits>
  [[gnu::cold, gnu::noinline]] static void retire_long(void* block, Fits fits) noexcept {
    if (block == nullptr) return;
    const Frame frame = frame_at(block);
    if (!fits(checked_bytes(block, frame))) Inner::fault(Fault::wrong_size, block);
    if (frame.usable <= ClosedBlocks::kBlockBytesMax) {
      Inner::Pages::zero(block, frame.room + kSealBytes);
      return frame.has_page ? closed_.put({block, frame.usable}, open_and_give) : Inner::deallocate(block);
    }
    // Untouched pages need not be zeroed, because the system provides zeroes.
    const std::size_t whole = base::round_up(address_of(block), platform::page_bytes()) - address_of(block);
    std::memset(block, 0, whole);
    Inner::Pages::purge(static_cast<std::byte*>(block) + whole, frame.room + kSealBytes - whole);
    open_and_give(block);
  }

  // ---- back to the heap

  [[gnu::always_inline]] static void wait(Waiting block) noexcept {
    WaitingBlocks* const own = waiting_;
    if (own == nullptr) [[unlikely]]
      return wait_first(block);
    own->put(block, [](Waiting first) { release(first); });
  }
  static void wait_long(Waiting block) noexcept {
    if (waiting_ == nullptr && !make_queue()) return release(block);
    waiting_->put_long(block, [](Waiting first) { release(first); });
  }
  [[gnu::cold, gnu::noinline]] static void wait_first(Waiting block) noexcept {
    return make_queue() ? wait(block) : release(block);
  }
  // For a thread's first free. The thread gets a heap, so that its end is noticed and its queue is emptied then. Not if
  // its end has begun: its blocks do not wait.
  [[gnu::cold, gnu::noinline]] static bool make_queue() noexcept {
    void* const made = Inner::attach_to_keep() ? Inner::Pages::metadata(kQueueBytes) : nullptr;
    if (made != nullptr) waiting_ = ::new (made) WaitingBlocks(base::mix(seals_.secret() ^ address_of(made)));
    return made != nullptr;
  }

  // All bytes that the program may have written, and up to 16 more bytes of the block.
  static std::size_t words_of(std::size_t bytes) noexcept {
    return (bytes / kBlockAlignment + 1) * (kBlockAlignment / sizeof(std::uint64_t));
  }

  // A block that has waited.
  [[gnu::always_inline]] static void release(Waiting block) noexcept {
    const std::size_t words = words_of(block.bytes);
    if (words > 3 * kLookedAt) [[unlikely]]
      return release_long(block);
    if (!is_zero(block.words, words)) [[unlikely]]
      Inner::fault(Fault::use_after_free, block.words);
    Inner::deallocate_held(block.words);  // a free one is not zero
  }
  static void expect_zero_words(Waiting block) noexcept {
    const std::size_t words = words_of(block.bytes);
    if (words > 3 * kLookedAt) return expect_zero(block);
    if (!is_zero(block.words, words)) Inner::fault(Fault::use_after_free, block.words);
  }
  [[gnu::noinline]] static void release_long(Waiting block) noexcept {
    expect_zero(block);
    Inner::deallocate(block.words);
  }
  // In three places of a block of more than three times kLookedAt words: both ends, and one between them that is drawn.
  static void expect_zero(Waiting block) noexcept {
    const std::size_t words = words_of(block.bytes);
    const std::uint64_t drawn = waiting_ != nullptr ? waiting_->draw() : 0;
    const std::size_t between = kLookedAt + base::scale_to(static_cast<std::uint32_t>(drawn),
                                                           static_cast<std::uint32_t>(words - 3 * kLookedAt + 1));
    for (const std::size_t begin : {std::size_t{0}, between, words - kLookedAt})
      if (!is_zero(block.words + begin, kLookedAt)) Inner::fault(Fault::use_after_free, block.words);
  }
  static void release_all() noexcept {
    if (waiting_ != nullptr) waiting_->release_all([](Waiting block) { release(block); });
  }

  static inline constinit Seals seals_{};
  static inline constinit ClosedBlocks closed_{};
  static inline constinit thread_local WaitingBlocks* waiting_ = nullptr;  // made by the thread's first free
};

}  // namespace loam::heap
