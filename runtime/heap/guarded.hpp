// Guarded: a heap behind checks that cost time, for LOAM_MALLOC_HARDENED=1.
//   Each block is some bytes longer than asked for. Behind the program's bytes follow up to 32 of padding, and at the
//   end of the block a seal: its length and a tag that its address and a secret make; behind that, where the block has
//   256 KiB or more, a page that nobody may touch; of shorter blocks that no class serves one in 16 has it. Beside the
//   blocks lies a flag for each 16 bytes of an area: set where a block begins that the program holds. Freed blocks are
//   zeroed and wait in a queue of the thread that freed them, behind 32 to 63 others: how many is drawn anew every 64
//   frees. They leave in the order in which they came: a program whose blocks come back in another order walks its
//   memory in that order from then on, and more so with each round, which costs more than all checks (ADR 0017).
//
//   Found: double and invalid frees and pointers into blocks, always (the flag); writes of 1 to 32 bytes past the end,
//   when the block is freed or resized (padding, seal; one byte of another value is enough); a free with another size,
//   always; writes to a freed block while it waits, when it leaves, in the first and last 512 bytes and 512 that are
//   drawn; a block with a page whose contents run on, at once. When a block serves again is not foreseen.
//
//   Source: seals as in scudo's checksums, flags as in hardened_malloc; zeroing, delay and guard pages as in both.
//
//   Cost: some 340 instructions for each pair of malloc and free, a memset, and lines that others would have used
//   meanwhile; for a block over 2 MiB, system calls. Not where nothing is wrong with the program and time counts.
//
//   G1 a block's flag is set exactly while the program holds it.
//   G2 a block that waits is zero in full, and waits in one place of one queue.
#pragma once

#include "runtime/base/bits.hpp"
#include "runtime/heap/closed_blocks.hpp"
#include "runtime/heap/fault.hpp"
#include "runtime/heap/geometry.hpp"
#include "runtime/heap/padding.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/sync/spin_lock.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>

namespace loam::heap {

// Inner: a Heap that nothing else allocates from.
template <class Inner>
class Guarded {
 public:
  // Not inlined: the ways that lead here are the slow ones of a heap without guards as well, and stay short.
  [[gnu::noinline]] static void* allocate(std::size_t bytes) noexcept {
    if (bytes > kBytesMax) return nullptr;
    const std::size_t sealed = bytes + kSealBytes;
    if (sealed > Classes::kMax) [[unlikely]]
      return allocate_long(bytes, false);
    return from_the_heap([=] { return Inner::allocate(sealed); }, bytes);
  }

  // bytes: more than the longest class has. Pages that are zero already are not touched.
  static void* allocate_zeroed(std::size_t bytes) noexcept {
    return bytes <= kBytesMax ? allocate_long(bytes, true) : nullptr;
  }

  static void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
    if (bytes > kBytesMax) return nullptr;
    const std::size_t sealed = bytes + kSealBytes;
    const bool is_long = Classes::class_aligned(alignment, sealed) == Classes::kClasses;
    const std::size_t wanted = is_long ? sealed + kGuardBytes : sealed;
    return from_the_heap([=] { return Inner::allocate_aligned(alignment, wanted); }, bytes);
  }

  [[gnu::noinline]] static void deallocate(void* block) noexcept {
    if (block == nullptr) return;
    drop(block);
    const Frame frame = frame_of(block);
    clear(block, checked_bytes(block, frame), frame);
  }

  [[gnu::noinline]] static void deallocate_sized(void* block, std::size_t bytes) noexcept {
    if (block == nullptr) return;
    drop(block);
    const Frame frame = frame_of(block);
    if (checked_bytes(block, frame) != bytes) Inner::fault(Fault::wrong_size, block);
    clear(block, bytes, frame);
  }

  [[gnu::noinline]] static void* reallocate(void* block, std::size_t bytes) noexcept {
    if (!is_held(block)) Inner::fault(fault_of_free(block), block);
    const Frame frame = frame_of(block);
    const std::size_t had = checked_bytes(block, frame);
    if (bytes <= frame.room && bytes >= frame.room / 2) {
      if (bytes < had) std::memset(static_cast<std::byte*>(block) + bytes, 0, had - bytes);
      close(block, bytes, frame);
      return block;
    }
    void* const moved = allocate(bytes);
    if (moved == nullptr) return nullptr;
    std::memcpy(moved, block, std::min(had, bytes));
    deallocate(block);
    return moved;
  }

  // Exactly what was asked for: behind it lies the padding.
  static std::size_t usable_bytes(const void* block) noexcept {
    if (!is_held(block)) Inner::fault(fault_of_free(block), block);
    return checked_bytes(block, frame_of(block));
  }

  static void thread_exit() noexcept {
    release_all();
    if (Waiting* const own = std::exchange(waiting_, nullptr); own != nullptr)
      Inner::Pages::unmap(reinterpret_cast<std::byte*>(own), kWaitingBytes);
    Inner::thread_exit();
  }
  static auto* own() noexcept { return Inner::own(); }

  // Around a fork.
  static void lock() noexcept {
    lock_.lock();
    closed_.lock();
  }
  static void unlock() noexcept {
    closed_.unlock();
    lock_.unlock();
  }

  // What other threads have freed goes on waiting.
  static bool trim() noexcept {
    release_all();
    closed_.give_all(open_and_give);
    return Inner::trim();
  }

  // nullptr, or the invariant that does not hold.
  static const char* verify() noexcept {
    const Waiting* const own = waiting_;
    for (std::uint32_t i = own == nullptr ? 0 : own->left; own != nullptr && i != own->came; ++i)
      if (!is_zero(words_of(own->places[i % kPlaces]), 2)) return "G2: a block that waits is zero";
    return closed_.verify([](const ClosedBlocks::Block& block) {
      return is_zero(static_cast<const std::uint64_t*>(block.start), frame_of(block.start).room / 16 * 2);
    });
  }

 private:
  using Classes = typename Inner::Classes;

  static constexpr std::size_t kSealBytes = sizeof(std::uint64_t);
  // What a guard page takes of a block, wherever the block ends in its last page.
  static constexpr std::size_t kGuardBytes = 2 * platform::kPageBytes;
  // Usable bytes from which on every block has one; of the shorter long ones one in so many places.
  static constexpr std::size_t kAlwaysGuarded = std::size_t{256} << 10;
  static constexpr unsigned kOneIn = 16;
  static constexpr std::size_t kBytesMax = Inner::kBytesMax - kSealBytes - kGuardBytes;
  static constexpr std::size_t kLookedAt = 64;  // words at each of three places of a block that has waited
  static constexpr std::uint32_t kPlaces = 64, kWaitingMin = 32;
  // Of a seal. The tag has the rest: the bits of a product that depend on most of what is multiplied.
  static constexpr std::uint64_t kLengthMask = (std::uint64_t{1} << 48) - 1;
  static constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15u;  // 2^64 over the golden ratio
  static_assert(Classes::kMax >> (64 - kAddressBits) == 0, "the length of what waits has room beside its address");
  static constexpr unsigned kAreasMax = 1u << (kAddressBits - kAreaShift);
  static constexpr std::size_t kFlagsBytes = kAreaBytes / kBlockAlignment;

  // Of a thread: no other one is asked, and what is freed comes back to who has it in its cache. In pages of its own.
  struct Waiting {
    std::array<std::uint64_t, kPlaces> places;  // the block's address, and above it how long it was
    std::uint32_t came, left, limit;            // of all times; how many may wait
    std::uint64_t drawn;                        // not 0
  };
  static constexpr std::size_t kWaitingBytes = base::round_up(sizeof(Waiting), platform::kPageBytes);

  // Whole bytes, which are set by a plain store: bits would need a locked instruction each time.
  using Flag = std::atomic<std::uint8_t>;

  static std::uint64_t secret() noexcept {
    // relaxed: whoever finds none draws one, and the first exchange decides.
    const std::uint64_t value = secret_.load(std::memory_order_relaxed);
    return value != 0 ? value : draw_secret();
  }
  [[gnu::cold, gnu::noinline]] static std::uint64_t draw_secret() noexcept {
    std::uint64_t value = 0, drawn = 0;
    platform::random_bytes(std::as_writable_bytes(std::span(&drawn, 1)));
    drawn |= 1;
    return secret_.compare_exchange_strong(value, drawn, std::memory_order_relaxed) ? drawn : value;
  }

  static std::uint64_t seal_of(const void* block, std::size_t bytes) noexcept {
    const std::uint64_t tag = (address_of(block) ^ secret() ^ bytes << 3) * kSpread;
    return (tag & ~kLengthMask) | bytes;
  }

  // The parts of a block: the program's room, the seal, and the guard page of a long one.
  struct Frame {
    std::size_t room;  // in front of the seal
    std::size_t usable;
    bool is_long, has_page;
  };
  static Frame frame_of(const void* block) noexcept {
    const std::size_t usable = Inner::usable_bytes(block);
    if (usable <= Classes::kMax) [[likely]]
      return {usable - kSealBytes, usable, false, false};
    const std::size_t guarded = usable - (address_of(block) + usable) % platform::kPageBytes - platform::kPageBytes;
    // Of the shorter ones by their place, which is the same answer as long as there is the block.
    const bool has_page = usable >= kAlwaysGuarded || base::mix(address_of(block) ^ secret()) % kOneIn == 0;
    return {guarded - kSealBytes, usable, true, has_page};
  }
  // returns false: the system refused, and the page stays as it was
  [[gnu::cold, gnu::noinline]] static bool guard(void* block, const Frame& frame, bool open) noexcept {
    return Inner::Pages::protect(static_cast<std::byte*>(block) + frame.room + kSealBytes, platform::kPageBytes, open);
  }

  // Padding and seal behind `bytes`.
  static void close(void* block, std::size_t bytes, const Frame& frame) noexcept {
    auto* const begin = static_cast<std::byte*>(block);
    pad(begin + bytes, std::min(kPaddingMax, frame.room - bytes));
    const std::uint64_t seal = seal_of(block, bytes);
    std::memcpy(begin + frame.room, &seal, sizeof seal);
  }

  // What was asked for; ends the program if something was written behind it.
  static std::size_t checked_bytes(const void* block, const Frame& frame) noexcept {
    const auto* const begin = static_cast<const std::byte*>(block);
    std::uint64_t seal;
    std::memcpy(&seal, begin + frame.room, sizeof seal);
    const std::size_t bytes = seal & kLengthMask;
    if (bytes > frame.room || seal != seal_of(block, bytes) ||
        !is_padded(begin + bytes, std::min(kPaddingMax, frame.room - bytes)))
      Inner::fault(Fault::write_past_end, block);
    return bytes;
  }

  // One that waits, which is zero, or one of the heap's.
  [[gnu::cold, gnu::noinline]] static void* allocate_long(std::size_t bytes, bool zeroed) noexcept {
    const std::size_t wanted = bytes + kSealBytes + kGuardBytes;
    const auto kept = closed_.take(wanted);
    if (kept.start == nullptr)
      return from_the_heap([=] { return zeroed ? Inner::allocate_zeroed(wanted) : Inner::allocate(wanted); }, bytes);
    const Frame frame = frame_of(kept.start);
    expect_zero(static_cast<std::uint64_t*>(kept.start), frame.room / sizeof(std::uint64_t));
    return hand_out(known_flags_of(kept.start), kept.start, bytes, frame);
  }
  // What waits may be what is missing.
  template <class Allocate>
  [[gnu::always_inline]] static void* from_the_heap(Allocate allocate_inner, std::size_t bytes) noexcept {
    void* const block = admit(allocate_inner(), bytes);
    if (block != nullptr) [[likely]]
      return block;
    return closed_.give_all(open_and_give) ? admit(allocate_inner(), bytes) : nullptr;
  }
  // A block whose page stays closed is lost: whoever got it next would die of that page.
  static void open_and_give(void* block) noexcept {
    if (guard(block, frame_of(block), true)) Inner::deallocate(block);
  }

  static void* admit(void* block, std::size_t bytes) noexcept {
    if (block == nullptr) return nullptr;
    Flag* const flags = known_flags_of(block);
    if (flags == nullptr) [[unlikely]]
      return admit_first(block, bytes);
    std::memset(block, 0, kBlockAlignment);  // the heap's own words
    const Frame frame = frame_of(block);
    if (frame.has_page) [[unlikely]]
      guard(block, frame, false);  // or the seal alone guards it
    return hand_out(flags, block, bytes, frame);
  }

  [[gnu::always_inline]] static void* hand_out(Flag* flags, void* block, std::size_t bytes,
                                               const Frame& frame) noexcept {
    // relaxed: a block passes from thread to thread by means that order.
    flag(flags, block).store(1, std::memory_order_relaxed);
    close(block, bytes, frame);
    return block;
  }

  // The first block of an area.
  [[gnu::cold, gnu::noinline]] static void* admit_first(void* block, std::size_t bytes) noexcept {
    if (make_flags(block)) return admit(block, bytes);
    Inner::deallocate(block);
    return nullptr;
  }

  // The program holds the block no more; ends it where it did not before. Not one exchange, which would wait for all
  // stores before it: of two threads that free a block in the same instant both may pass, and the seal, which the first
  // one clears, or the heap behind finds it.
  static void drop(void* block) noexcept {
    Flag* const flags = known_flags_of(block);
    if (!is_held(flags, block)) Inner::fault(fault_of_free(block), block);
    flag(flags, block).store(0, std::memory_order_relaxed);
  }

  static bool is_held(const void* block) noexcept { return is_held(known_flags_of(block), block); }
  static bool is_held(Flag* flags, const void* block) noexcept {
    return flags != nullptr && address_of(block) % kBlockAlignment == 0 &&
           flag(flags, block).load(std::memory_order_relaxed) != 0;
  }

  static Fault fault_of_free(const void* block) noexcept {
    return !Inner::covers(block) ? Fault::foreign : Inner::is_block(block) ? Fault::double_free : Fault::interior;
  }

  static void clear(void* block, std::size_t bytes, const Frame& frame) noexcept {
    if (frame.is_long) [[unlikely]]
      return clear_long(block, frame);
    // What is behind the padding too: an earlier block's memory may have shown there.
    std::memset(block, 0, frame.usable);
    const std::uint64_t waits = address_of(block) | bytes << kAddressBits;
    Waiting* const own = waiting_;
    if (own == nullptr) [[unlikely]]
      return wait_first(waits);
    wait(*own, waits);
  }
  [[gnu::cold, gnu::noinline]] static void clear_long(void* block, const Frame& frame) noexcept {
    if (frame.usable <= ClosedBlocks::kBlockBytesMax) {
      std::memset(block, 0, frame.room + kSealBytes);
      return frame.has_page ? closed_.put({block, frame.usable}, open_and_give) : Inner::deallocate(block);
    }
    // What was never touched need not be, and the system has zeroes.
    const std::size_t whole = base::round_up(address_of(block), platform::kPageBytes) - address_of(block);
    std::memset(block, 0, whole);
    Inner::Pages::purge(static_cast<std::byte*>(block) + whole, frame.room + kSealBytes - whole);
    open_and_give(block);
  }
  // The first block that a thread frees. The thread gets a heap, and so an end at which nothing is left to wait.
  [[gnu::cold, gnu::noinline]] static void wait_first(std::uint64_t waits) noexcept {
    if (!Inner::attach()) return release(waits);
    auto* const made = reinterpret_cast<Waiting*>(Inner::Pages::metadata(kWaitingBytes));
    if (made == nullptr) return release(waits);
    made->drawn = base::mix(secret() ^ address_of(made)) | 1;
    made->limit = kWaitingMin;
    waiting_ = made;
    wait(*made, waits);
  }

  static void wait(Waiting& own, std::uint64_t waits) noexcept {
    own.places[own.came++ % kPlaces] = waits;
    if (own.came % kPlaces == 0) [[unlikely]]
      draw_limit(own);
    if (own.came - own.left > own.limit) release_first(own);
  }
  [[gnu::cold, gnu::noinline]] static void draw_limit(Waiting& own) noexcept {
    own.limit = kWaitingMin + static_cast<std::uint32_t>(draw(own) % (kPlaces - kWaitingMin));
    while (own.came - own.left > own.limit) release_first(own);
  }
  static void release_first(Waiting& own) noexcept { release(own.places[own.left++ % kPlaces]); }

  static std::uint64_t* words_of(std::uint64_t waits) noexcept {
    return reinterpret_cast<std::uint64_t*>(waits & ((std::uint64_t{1} << kAddressBits) - 1));
  }

  // A block that has waited goes back to the heap.
  static void release(std::uint64_t waited) noexcept {
    std::uint64_t* const words = words_of(waited);
    const std::size_t held =
        base::round_up(static_cast<std::size_t>(waited >> kAddressBits), kBlockAlignment) / sizeof *words;
    if (held > 3 * kLookedAt)
      expect_zero(words, held);
    else if (!is_zero(words, held))
      Inner::fault(Fault::use_after_free, words);
    Inner::deallocate(words);
  }
  // In three places of a block of more than three times kLookedAt words.
  [[gnu::noinline]] static void expect_zero(std::uint64_t* words, std::size_t held) noexcept {
    if (!is_zero(words, kLookedAt) || !is_zero(words + drawn_window(held), kLookedAt) ||
        !is_zero(words + held - kLookedAt, kLookedAt))
      Inner::fault(Fault::use_after_free, words);
  }

  // Where, between the first and the last kLookedAt words of `count`, others begin that are looked at.
  static std::size_t drawn_window(std::size_t count) noexcept {
    const std::uint64_t drawn = waiting_ != nullptr ? draw(*waiting_) : 0;
    return kLookedAt +
           base::scale_to(static_cast<std::uint32_t>(drawn), static_cast<std::uint32_t>(count - 3 * kLookedAt + 1));
  }

  static void release_all() noexcept {
    if (waiting_ == nullptr) return;
    while (waiting_->left != waiting_->came) release_first(*waiting_);
  }

  // Source: Marsaglia, Xorshift RNGs (2003), one sequence a thread.
  static std::uint64_t draw(Waiting& own) noexcept {
    std::uint64_t& word = own.drawn;
    word ^= word << 13;
    word ^= word >> 7;
    word ^= word << 17;
    return word;
  }

  static Flag& flag(Flag* flags, const void* block) noexcept {
    return flags[address_of(block) % kAreaBytes / kBlockAlignment];
  }

  // The flags of the block's 256 MiB. nullptr: no block was ever made there
  static Flag* known_flags_of(const void* block) noexcept {
    const std::uintptr_t area = address_of(block) >> kAreaShift;
    // acquire: pairs with the release in make_flags(): the flags are zero.
    return area < kAreasMax ? flags_[area].load(std::memory_order_acquire) : nullptr;
  }

  // returns false: no memory
  static bool make_flags(const void* block) noexcept {
    const std::lock_guard guard(lock_);
    if (known_flags_of(block) != nullptr) return true;
    auto* const made = reinterpret_cast<Flag*>(Inner::Pages::metadata(kFlagsBytes));
    flags_[address_of(block) >> kAreaShift].store(made, std::memory_order_release);
    return made != nullptr;
  }

  static inline constinit sync::SpinLock lock_{};
  static inline constinit ClosedBlocks closed_{};
  static inline constinit std::atomic<std::uint64_t> secret_{0};
  static inline constinit thread_local Waiting* waiting_ = nullptr;  // made by the thread's first free
  static inline constinit std::atomic<Flag*> flags_[kAreasMax]{};
};

}  // namespace loam::heap
