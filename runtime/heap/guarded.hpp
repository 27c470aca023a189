// Guarded: a heap with checks that cost time, for LOAM_MALLOC_HARDENED=1.
//   Blocks   A block lies in a place of a slab, or in a span, that has more bytes than were requested. In front of the
//            program's bytes are 32 with a mark (fronts.hpp); behind them up to 32 bytes of padding, and at the end of
//            the place a seal: the block's length, mixed with its address and a secret. A block of 256 KiB or more has
//            an inaccessible page behind it; of the shorter blocks without a size class, one in 16 has such a page.
//            A block of no bytes is an inaccessible address (empty_blocks.hpp). Addresses that no span has used yet are
//            inaccessible as well (close_unused()).
//   Frees    A freed block, its front and seal included, is zeroed, and waits in a queue of the thread that freed it,
//            until 32 to 95 further frees. When 96 blocks wait, all but a random number of 32 to 63 leave; blocks over
//            256 bytes leave before they have 64 KiB together. Blocks leave in the order in which they came, and the
//            second heap hands out blocks by address (serving_order.hpp). With another order a program would walk its
//            memory in that order, more so with each round, and cache misses would cost more than all checks (ADR 0017).
//
//   Found: double frees, invalid frees and pointers into blocks, always (they have no front; by chance 1 in 2^64 does);
//   writes of 1 to 32 bytes past the end or before the start, when the block is freed or resized (front, padding, seal;
//   one byte of another value is enough), and if it never is, at the end of the process, of the first kHeldLooks blocks
//   of slabs; some of these also while the process runs; a free with another size, always; each access to a block of no
//   bytes, at once; writes to a freed block while it waits, when it leaves, in the first 480 and last 512 bytes and 512
//   random ones; the same at the end of the process, in the queue of the main thread; a write beyond a block with a
//   guard page, or to addresses that nothing has used yet, at once. The time at which a block serves again cannot be
//   predicted. Not found: a write before the start of a long block with an alignment of more than 32 bytes.
//
//   Source: seals as in scudo's checksums; zeroing, delay and guard pages as in scudo and hardened_malloc.
//
//   Cost: some 200 instructions for each pair of malloc and free; above 256 bytes a memset; cache lines of waiting
//   blocks; for a block over 2 MiB, system calls.
//   When not: programs that are known to be correct and need speed.
//
//   G1 a block has its front, and its seal at its end, exactly while the program holds it.
//   G2 a block that waits is zero in full, and waits in one place of one queue.
#pragma once

#include "runtime/base/bits.hpp"
#include "runtime/heap/area.hpp"
#include "runtime/heap/closed_blocks.hpp"
#include "runtime/heap/empty_blocks.hpp"
#include "runtime/heap/fault.hpp"
#include "runtime/heap/fronts.hpp"
#include "runtime/heap/geometry.hpp"
#include "runtime/heap/guarded_frames.hpp"
#include "runtime/heap/held_blocks.hpp"
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
class Guarded : GuardedFrames<Inner> {
  using Frames = GuardedFrames<Inner>;
  using Frames::checked_bytes, Frames::close, Frames::frame_at, Frames::free_bytes_of, Frames::guard,
      Frames::guard_bytes, Frames::guarded_bytes, Frames::kFrameBytes, Frames::kSealBytes, Frames::long_frame,
      Frames::put_seal, Frames::seals_, Frames::short_frame, Frames::short_frame_at;
  using typename Frames::Frame;

 public:
  // Not inlined: these calls are in the slow paths of the default heap, which should stay short.
  [[gnu::noinline]] static void* allocate(std::size_t bytes) noexcept {
    if (bytes - 1 >= Classes::kMax - kFrameBytes) [[unlikely]]  // 0, and long ones
      return bytes == 0 ? allocate_empty(kBlockAlignment) : allocate_long(bytes, false);
    const std::size_t whole = bytes + kFrameBytes;
    void* const place = Inner::allocate_listed(whole);
    if (place == nullptr) [[unlikely]]
      return allocate_slowly(bytes);
    auto* const block = static_cast<std::byte*>(place) + fronts::kBytes;
    const std::size_t room = Classes::bytes_of(Classes::class_of(whole)) - kFrameBytes;
    fronts::clear(block);
    pad_new(block + bytes, room - bytes);
    put_seal(block, bytes, room);
    platform::compiler_barrier();  // who finds the front finds the seal
    fronts::put(block, seals_.mark_of(block));
    return block;
  }

  // bytes: more than the longest class has. Pages that are zero already are not touched.
  static void* allocate_zeroed(std::size_t bytes) noexcept { return allocate_long(bytes, true); }

  static void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
    if (bytes > kBytesMax) return nullptr;
    if (bytes == 0 && alignment <= platform::page_bytes()) return allocate_empty(alignment);
    const std::size_t distance = std::max(alignment, fronts::kBytes), whole = distance + bytes + kSealBytes;
    if (Classes::class_aligned(alignment, whole) != Classes::kClasses)
      return from_the_heap([=] { return Inner::allocate_aligned(alignment, whole); }, bytes, distance);
    // Where the program's bytes begin at the span's, nothing of the block lies in front of them.
    const std::size_t in_front = alignment <= fronts::kBytes ? fronts::kBytes : 0;
    const std::size_t wanted = std::max(in_front + bytes + kSealBytes + guard_bytes(), Classes::kMax + 1);
    return from_the_heap([=] { return Inner::allocate_aligned(alignment, wanted); }, bytes, in_front);
  }

  // word: of the block's unit
  [[gnu::noinline]] static void deallocate(void* block, PageMap::Word word) noexcept {
    retire(block, word, [](std::size_t) { return true; });
  }

  [[gnu::noinline]] static void deallocate_sized(void* block, std::size_t bytes) noexcept {
    retire(block, Inner::word_of(block), [bytes](std::size_t had) { return had == bytes; });
  }

  [[gnu::noinline]] static void* reallocate(void* block, std::size_t bytes) noexcept {
    if (empty_.covers(block)) [[unlikely]] {
      expect_empty(block);
      void* const moved = allocate(bytes);
      if (moved != nullptr) give_empty(block);
      return moved;
    }
    const Frame frame = frame_at(block);
    const std::size_t had = checked_bytes(block, frame);
    if (bytes <= frame.room && bytes >= frame.room / 2) {
      if (bytes < had) std::memset(static_cast<std::byte*>(block) + bytes, 0, had - bytes);
      close(static_cast<std::byte*>(block), bytes, frame.room);
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
  static std::size_t usable_bytes(const void* block) noexcept {
    if (!empty_.covers(block)) return checked_bytes(block, frame_at(block));
    expect_empty(block);
    return 0;
  }

  static void thread_exit(bool last) noexcept {
    release_all();
    if (WaitingBlocks* const own = std::exchange(waiting_, nullptr); own != nullptr)
      Inner::Pages::unmap(reinterpret_cast<std::byte*>(own), kQueueBytes);
    Inner::thread_exit(last);
  }
  static auto* own() noexcept { return Inner::own(); }

  // For the end of a process: checks blocks that would not be checked otherwise. This thread's waiting blocks and the
  // free long blocks, 96 and 16, at most 1536 bytes of each; they stay where they are. And blocks that were never freed.
  static void check_what_waits() noexcept {
    if (waiting_ != nullptr) waiting_->for_each([](Waiting block) { expect_zero_words(block); });
    closed_.for_each([](const ClosedBlocks::Block& block) {
      expect_zero({static_cast<std::uint64_t*>(block.start), free_bytes_of(block.start) / 16 * 16 - 1});
    });
    if (seals_.secret() == 0) return;
    std::size_t left = kHeldLooks;
    Inner::Spans::for_each([&left](const Span& span) {
      if (span.kind == SpanKind::slab) {
        const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(span.carved, left));
        for (std::uint32_t i = 0; i < count; ++i) expect_unbroken(span, i);
        left -= count;
      } else if (span.kind == SpanKind::large) {
        const std::size_t usable = span.units * kUnitBytes - address_of(span.blocks) % kUnitBytes;
        expect_unbroken(span.blocks, guarded_bytes(span.blocks, usable));
        --left;
      }
      return left != 0;
    });
  }

  static void mend_in_child() noexcept {
    closed_.mend_in_child();
    empty_.mend_in_child();
  }

  // What other threads have freed goes on waiting.
  static bool trim() noexcept {
    release_all();
    closed_.give_all(leave);
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
      return is_zero(static_cast<const std::uint64_t*>(block.start), free_bytes_of(block.start) / 16 * 2);
    });
  }

 private:
  using Classes = typename Inner::Classes;
  using Waiting = WaitingBlocks::Block;

  // Blocks that are looked at where the process ends: some 50 ms at most.
  static constexpr std::size_t kHeldLooks = std::size_t{1} << 22;
  static constexpr unsigned kLooksAround = 2;  // each time that blocks leave the queue
  static constexpr std::size_t kBytesMax = Inner::kBytesMax - kFrameBytes - 2 * platform::kPageBytesMax;
  static constexpr std::size_t kLookedAt = 64;  // words at each of three places of a block that has waited
  static_assert(Classes::kMax <= WaitingBlocks::kBytesMax && kZeroedMax <= WaitingBlocks::kShortMax);
  static constexpr std::size_t kQueueBytes = base::round_up(sizeof(WaitingBlocks), platform::kPageBytes);

  // ---- blocks that nobody passes

  // Ends the program if the block in a slab's place is held and was written beyond.
  static void expect_unbroken(const Span& slab, std::uint32_t place) noexcept {
    const std::size_t usable = Classes::bytes_of(slab.size_class);
    expect_unbroken(slab.blocks + place * usable, usable);
  }
  static void expect_unbroken(const std::byte* start, std::size_t usable) noexcept {
    const Held found = HeldBlocks::look(seals_, start, usable);
    if (HeldBlocks::is_broken(found)) [[unlikely]]
      Inner::fault(found == Held::past_end ? Fault::write_past_end : Fault::write_before_start, start + fronts::kBytes);
  }
  // Some others in the slab of a short block that waits, so the slab stays.
  [[gnu::noinline]] static void look_around(Waiting block) noexcept {
    const Span& slab = *Inner::Spans::span_of(block.words);
    for (unsigned i = 0; i < kLooksAround && slab.carved != 0; ++i) expect_unbroken(slab, looked_at_++ % slab.carved);
  }

  // ---- blocks of no bytes

  // An inaccessible address, or, where there is none left, a place with no bytes for the program.
  [[gnu::cold, gnu::noinline]] static void* allocate_empty(std::size_t alignment) noexcept {
    if (void* const block = empty_.take(alignment)) return block;
    const std::size_t distance = std::max(alignment, fronts::kBytes);
    return from_the_heap([=] { return Inner::allocate_aligned(alignment, distance + kSealBytes); }, 0, distance);
  }
  static void expect_empty(const void* block) noexcept {
    if (!empty_.holds(block)) [[unlikely]]
      Inner::fault(fault_of_empty(block), block);
  }
  static void give_empty(const void* block) noexcept {
    if (!empty_.give(block)) [[unlikely]]
      Inner::fault(fault_of_empty(block), block);
  }
  static Fault fault_of_empty(const void* block) noexcept {
    return address_of(block) % kBlockAlignment != 0 ? Fault::interior : Fault::double_free;
  }

  // ---- into the program's hands

  // The heap's lists have none.
  [[gnu::noinline]] static void* allocate_slowly(std::size_t bytes) noexcept {
    return from_the_heap([=] { return Inner::allocate(bytes + kFrameBytes); }, bytes, fronts::kBytes);
  }
  // A block that waits, which is zero, or one of the heap's.
  [[gnu::cold, gnu::noinline]] static void* allocate_long(std::size_t bytes, bool zeroed) noexcept {
    if (bytes > kBytesMax) return nullptr;
    const std::size_t wanted = bytes + kFrameBytes + guard_bytes();
    const auto kept = closed_.take(wanted);
    if (kept.start == nullptr)
      return from_the_heap([=] { return zeroed ? Inner::allocate_zeroed(wanted) : Inner::allocate(wanted); }, bytes,
                           fronts::kBytes);
    const std::size_t free = free_bytes_of(kept.start);
    expect_zero({static_cast<std::uint64_t*>(kept.start), free / 16 * 16 - 1});
    return hand_out(long_frame(static_cast<std::byte*>(kept.start), fronts::kBytes), bytes);
  }
  // What waits may be what is missing. distance: of the block from the begin of its place
  template <class Allocate>
  static void* from_the_heap(Allocate allocate_inner, std::size_t bytes, std::size_t distance) noexcept {
    Inner::Spans::close_unused();
    void* place = allocate_inner();
    if (place == nullptr && closed_.give_all(leave)) place = allocate_inner();
    return place == nullptr ? nullptr : admit(static_cast<std::byte*>(place), bytes, distance);
  }
  // A block that has waited in vain.
  static void leave(void* start) noexcept {
    expect_zero({static_cast<std::uint64_t*>(start), free_bytes_of(start) / 16 * 16 - 1});
    open_and_give(start);
  }
  // If the page cannot be opened, the block is lost: its next user would fault on that page.
  static void open_and_give(void* start) noexcept {
    if (const Frame frame = long_frame(static_cast<std::byte*>(start), 0); guard(frame, true)) Inner::deallocate(start);
  }

  // The first block of every thread comes this way.
  [[gnu::noinline]] static void* admit(std::byte* place, std::size_t bytes, std::size_t distance) noexcept {
    seals_.draw_secret_once();
    const PageMap::Word word = Inner::word_of(place);
    const Frame frame = Inner::is_slab(word) ? short_frame(place + distance, Inner::class_bytes(word), distance)
                                             : long_frame(place, distance);
    if (frame.has_page) guard(frame, false);  // or the seal alone guards it
    std::memset(place, 0, kBlockAlignment);   // the heap's own words
    return hand_out(frame, bytes);
  }

  static void* hand_out(const Frame& frame, std::size_t bytes) noexcept {
    std::byte* const block = frame.start + frame.distance;
    close(block, bytes, frame.room);
    if (frame.distance > fronts::kBytes)
      fronts::put(block, seals_.mark_of(block), frame.distance);
    else if (frame.distance != 0)
      fronts::put(block, seals_.mark_of(block));
    return block;
  }

  // Makes a long block longer without copying it. returns where it lies now; nullptr: it is as it was
  static void* grow(void* block, std::size_t bytes, const Frame& frame) noexcept {
    const PageMap::Word word = Inner::word_of(block);
    if (Inner::is_slab(word) || bytes <= frame.room || bytes > kBytesMax) return nullptr;
    return grow_long(word, bytes, frame);
  }
  [[gnu::cold, gnu::noinline]] static void* grow_long(PageMap::Word word, std::size_t bytes,
                                                      const Frame& frame) noexcept {
    if (frame.has_page && !guard(frame, true)) return nullptr;
    auto* const start =
        static_cast<std::byte*>(Inner::Large::resize(word, frame.distance + bytes + kSealBytes + guard_bytes()));
    if (start == nullptr) {
      if (frame.has_page) guard(frame, false);
      return nullptr;
    }
    std::memset(start + frame.distance + frame.room, 0, kSealBytes);
    const Frame longer = long_frame(start, frame.distance);
    if (longer.has_page) guard(longer, false);
    return hand_out(longer, bytes);
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
    const std::size_t bytes = checked_bytes(block, frame);
    if (!fits(bytes)) [[unlikely]]
      Inner::fault(Fault::wrong_size, block);
    fronts::clear(static_cast<std::byte*>(block));
    const Waiting waiting{reinterpret_cast<std::uint64_t*>(frame.start), frame.distance + bytes};
    if (frame.usable > kZeroedMax) [[unlikely]]
      return clear(waiting, frame.usable);
    // The bytes behind the padding too, because they may have contents of an earlier block.
    zero(frame.start, frame.usable);
    wait(waiting);
  }
  [[gnu::noinline]] static void clear(Waiting block, std::size_t usable) noexcept {
    std::memset(block.words, 0, usable);
    wait_long(block);
  }

  template <class Fits>
  [[gnu::cold, gnu::noinline]] static void retire_long(void* block, Fits fits) noexcept {
    if (block == nullptr) return;
    if (empty_.covers(block)) {
      if (!fits(0)) Inner::fault(Fault::wrong_size, block);
      return give_empty(block);
    }
    const Frame frame = frame_at(block);
    if (!fits(checked_bytes(block, frame))) Inner::fault(Fault::wrong_size, block);
    std::byte* const start = frame.start;
    const std::size_t bytes = frame.distance + frame.room + kSealBytes;
    if (frame.usable <= ClosedBlocks::kBlockBytesMax) {
      Inner::Pages::zero(start, bytes);
      return frame.has_page ? closed_.put({start, frame.usable}, leave) : Inner::deallocate(start);
    }
    // Untouched pages need not be zeroed, because the system provides zeroes.
    const std::size_t whole = base::round_up(address_of(start), platform::page_bytes()) - address_of(start);
    std::memset(start, 0, whole);
    Inner::Pages::purge(start + whole, bytes - whole);
    open_and_give(start);
  }

  // ---- back to the heap

  [[gnu::always_inline]] static void wait(Waiting block) noexcept {
    WaitingBlocks* const own = waiting_;
    if (own == nullptr) [[unlikely]]
      return wait_first(block);
    if (own->put(block, [](Waiting first) { release(first); })) [[unlikely]]
      look_around(block);
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

  static inline constinit ClosedBlocks closed_{};
  static inline constinit EmptyBlocks<typename Inner::Pages> empty_{};
  static inline constinit thread_local std::uint32_t looked_at_ = 0;
  static inline constinit thread_local WaitingBlocks* waiting_ = nullptr;  // made by the thread's first free
};

}  // namespace loam::heap
