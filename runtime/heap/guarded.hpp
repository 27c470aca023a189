// Guarded: a heap behind checks that cost time, for LOAM_MALLOC_HARDENED=1.
//   Each block is some bytes longer than asked for. Behind the program's bytes follow up to 32 of padding, and at the
//   end of the block a seal: its length and a tag that its address and a secret make; behind that, where the block is
//   longer than any class, a page that nobody may touch. Beside the blocks lies a flag for each 16 bytes of an area:
//   set where a block begins that the program holds. Freed blocks are zeroed and wait in one of 64 places, drawn at
//   random, until a later one takes the place. Found   double and invalid frees and pointers into blocks, always (the
//   flag); writes of 1 to 32 bytes past the end,
//           when the block is freed or resized (padding, seal; one byte of another value is enough); a free with
//           another size, always; writes to a freed block while it waits, when it leaves; a long block's contents run
//           on, at once (the page). Which block serves next is not foreseen.
//   Source  seals as in scudo's checksums, flags as in hardened_malloc; zeroing, delay and guard pages as in both.
//   Cost    two exchanges, a memset and the padding for each pair of malloc and free; for a long block two
//           system calls. Not where nothing is wrong with the program and time counts.
//   G1 a block's flag is set exactly while the program holds it.
//   G2 a block that waits is zero in full.
#pragma once

#include "runtime/base/bits.hpp"
#include "runtime/heap/fault.hpp"
#include "runtime/heap/geometry.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/sync/spin_lock.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <span>

namespace loam::heap {

// Inner: a Heap that nothing else allocates from.
template <class Inner>
class Guarded {
 public:
  static void* allocate(std::size_t bytes) noexcept {
    if (bytes > kBytesMax) return nullptr;
    const std::size_t sealed = bytes + kSealBytes;
    return admit(Inner::allocate(sealed > Classes::kMax ? sealed + kGuardBytes : sealed), bytes);
  }

  static void* allocate_zeroed(std::size_t bytes) noexcept {
    void* const block = allocate(bytes);
    if (block != nullptr) std::memset(block, 0, bytes);
    return block;
  }

  static void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
    if (bytes > kBytesMax) return nullptr;
    const std::size_t sealed = bytes + kSealBytes;
    const bool is_long = Classes::class_aligned(alignment, sealed) == Classes::kClasses;
    return admit(Inner::allocate_aligned(alignment, is_long ? sealed + kGuardBytes : sealed), bytes);
  }

  static void deallocate(void* block) noexcept {
    if (block == nullptr) return;
    drop(block);
    clear(block, checked_bytes(block));
  }

  static void deallocate_sized(void* block, std::size_t bytes) noexcept {
    if (block == nullptr) return;
    drop(block);
    const std::size_t had = checked_bytes(block);
    if (had != bytes) Inner::fault(Fault::wrong_size, block);
    clear(block, had);
  }

  static void* reallocate(void* block, std::size_t bytes) noexcept {
    if (!is_held(block)) Inner::fault(fault_of_free(block), block);
    const std::size_t had = checked_bytes(block);
    const auto room = static_cast<std::size_t>(seal_place(block) - static_cast<std::byte*>(block));
    if (bytes <= room && bytes >= room / 2) {
      if (bytes < had) std::memset(static_cast<std::byte*>(block) + bytes, 0, had - bytes);
      close(block, bytes);
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
    return checked_bytes(block);
  }

  static void thread_exit() noexcept { Inner::thread_exit(); }
  static auto* own() noexcept { return Inner::own(); }

  // Around a fork.
  static void lock() noexcept { lock_.lock(); }
  static void unlock() noexcept { lock_.unlock(); }

  static bool trim() noexcept {
    for (auto& place : waiting_) release(place.exchange(nullptr, std::memory_order_acq_rel));
    return Inner::trim();
  }

 private:
  using Classes = typename Inner::Classes;

  static constexpr std::size_t kSealBytes = sizeof(std::uint64_t), kPaddingMax = 32;
  // What a guard page takes of a block, wherever the block ends in its last page.
  static constexpr std::size_t kGuardBytes = 2 * platform::kPageBytes;
  static constexpr std::size_t kBytesMax = Inner::kBytesMax - kSealBytes - kGuardBytes;
  static constexpr std::uint64_t kPadding = 0xb5b5b5b5b5b5b5b5u;
  static constexpr std::size_t kWordBytes = sizeof kPadding;
  static constexpr unsigned kPlaces = 64;
  static constexpr unsigned kLengthBits = 48;  // the tag has the rest
  static constexpr unsigned kAreasMax = 1u << (kAddressBits - kAreaShift);
  static constexpr std::size_t kFlagsBytes = kAreaBytes / kBlockAlignment;

  // Whole bytes, which are set by a plain store: bits would need a locked instruction each time.
  using Flag = std::atomic<std::uint8_t>;

  static std::uint64_t secret() noexcept {
    // relaxed: whoever finds none draws one, and the first exchange decides.
    std::uint64_t value = secret_.load(std::memory_order_relaxed);
    if (value != 0) [[likely]]
      return value;
    std::uint64_t drawn = 0;
    platform::random_bytes(std::as_writable_bytes(std::span(&drawn, 1)));
    drawn |= 1;
    return secret_.compare_exchange_strong(value, drawn, std::memory_order_relaxed) ? drawn : value;
  }

  static std::uint64_t seal_of(const void* block, std::size_t bytes) noexcept {
    return base::mix(address_of(block) ^ secret() ^ bytes << 3) << kLengthBits | bytes;
  }

  // What is left of `usable` bytes in front of the guard page, for blocks that are longer than any class.
  static bool is_long(std::size_t usable) noexcept { return usable > Classes::kMax; }
  static std::byte* end_of(const void* block, std::size_t usable) noexcept {
    std::byte* const end = static_cast<std::byte*>(const_cast<void*>(block)) + usable;
    return is_long(usable) ? end - address_of(end) % platform::kPageBytes - platform::kPageBytes : end;
  }

  static std::byte* seal_place(const void* block) noexcept {
    return end_of(block, Inner::usable_bytes(block)) - kSealBytes;
  }

  // Bytes of padding behind a block's `bytes`.
  static std::size_t padding_of(const void* block, std::size_t bytes) noexcept {
    const auto room = static_cast<std::size_t>(seal_place(block) - static_cast<const std::byte*>(block));
    return std::min(kPaddingMax, room - bytes);
  }

  // By words of eight bytes that may overlap, and by bytes where there are fewer than eight.
  static void pad(std::byte* begin, std::size_t bytes) noexcept {
    if (bytes < kWordBytes) {
      for (std::size_t i = 0; i < bytes; ++i) begin[i] = std::byte{kPadding & 0xff};
      return;
    }
    for (std::size_t i = 0; i + kWordBytes < bytes; i += kWordBytes) std::memcpy(begin + i, &kPadding, kWordBytes);
    std::memcpy(begin + bytes - kWordBytes, &kPadding, kWordBytes);
  }
  static bool is_padded(const std::byte* begin, std::size_t bytes) noexcept {
    if (bytes < kWordBytes)
      return std::all_of(begin, begin + bytes, [](std::byte b) { return b == std::byte{kPadding & 0xff}; });
    const auto word = [begin](std::size_t i) {
      std::uint64_t read;
      std::memcpy(&read, begin + i, sizeof read);
      return read;
    };
    std::uint64_t changed = word(bytes - kWordBytes) ^ kPadding;
    for (std::size_t i = 0; i + kWordBytes < bytes; i += kWordBytes) changed |= word(i) ^ kPadding;
    return changed == 0;
  }

  // Padding and seal behind `bytes`.
  static void close(void* block, std::size_t bytes) noexcept {
    pad(static_cast<std::byte*>(block) + bytes, padding_of(block, bytes));
    const std::uint64_t seal = seal_of(block, bytes);
    std::memcpy(seal_place(block), &seal, sizeof seal);
  }

  // What was asked for; ends the program if something was written behind it.
  static std::size_t checked_bytes(const void* block) noexcept {
    const std::byte* const place = seal_place(block);
    std::uint64_t seal;
    std::memcpy(&seal, place, sizeof seal);
    const std::size_t bytes = seal & ((std::uint64_t{1} << kLengthBits) - 1);
    const auto* const begin = static_cast<const std::byte*>(block);
    if (bytes > static_cast<std::size_t>(place - begin) || seal != seal_of(block, bytes))
      Inner::fault(Fault::write_past_end, block);
    if (!is_padded(begin + bytes, padding_of(block, bytes))) Inner::fault(Fault::write_past_end, block);
    return bytes;
  }

  static void* admit(void* block, std::size_t bytes) noexcept {
    if (block == nullptr) return nullptr;
    Flag* const flags = flags_of(block);
    if (flags == nullptr) {
      Inner::deallocate(block);
      return nullptr;
    }
    // relaxed: a block passes from thread to thread by means that order.
    flag(flags, block).store(1, std::memory_order_relaxed);
    std::memset(block, 0, std::min(kBlockAlignment, bytes));  // the heap's own words
    close(block, bytes);
    if (const std::size_t usable = Inner::usable_bytes(block); is_long(usable))
      Inner::Pages::protect(end_of(block, usable), platform::kPageBytes, false);  // or the seal alone guards it
    return block;
  }

  // The program holds the block no more; ends it where it did not before.
  static void drop(void* block) noexcept {
    Flag* const flags = known_flags_of(block);
    if (flags == nullptr || address_of(block) % kBlockAlignment != 0 ||
        flag(flags, block).exchange(0, std::memory_order_relaxed) == 0)
      Inner::fault(fault_of_free(block), block);
  }

  static bool is_held(const void* block) noexcept {
    Flag* const flags = known_flags_of(block);
    return flags != nullptr && address_of(block) % kBlockAlignment == 0 &&
           flag(flags, block).load(std::memory_order_relaxed) != 0;
  }

  static Fault fault_of_free(const void* block) noexcept {
    return !Inner::covers(block) ? Fault::foreign : Inner::is_block(block) ? Fault::double_free : Fault::interior;
  }

  static void clear(void* block, std::size_t bytes) noexcept {
    const std::size_t usable = Inner::usable_bytes(block);
    if (is_long(usable)) {
      Inner::Pages::protect(end_of(block, usable), platform::kPageBytes, true);
      std::memset(block, 0, bytes);
      return Inner::deallocate(block);
    }
    std::memset(block, 0, usable);  // what is behind the padding too: memory of an earlier block may have shown there
    // acq_rel: who takes a block out sees it zeroed (guarded.A, with itself).
    release(waiting_[draw() % kPlaces].exchange(block, std::memory_order_acq_rel));
  }

  // A block that has waited goes back to the heap.
  static void release(void* block) noexcept {
    if (block == nullptr) return;
    // No early end: so that the compiler takes many words at a time, and nearly always all are zero.
    const auto* const words = static_cast<const std::uint64_t*>(block);
    std::uint64_t found = 0;
    for (std::size_t i = 0, end = Inner::usable_bytes(block) / sizeof *words; i < end; ++i) found |= words[i];
    if (found != 0) Inner::fault(Fault::use_after_free, block);
    Inner::deallocate(block);
  }

  static std::uint64_t draw() noexcept {
    state_ += 0x9e3779b97f4a7c15u;  // SplitMix64, one sequence a thread
    return base::mix(state_ ^ secret() ^ address_of(&state_));
  }

  static Flag& flag(Flag* flags, const void* block) noexcept {
    return flags[address_of(block) % kAreaBytes / kBlockAlignment];
  }

  // The flags of the block's 256 MiB. nullptr: no block was ever made there
  static Flag* known_flags_of(const void* block) noexcept {
    const std::uintptr_t area = address_of(block) >> kAreaShift;
    // acquire: pairs with the release in flags_of(): the flags are zero.
    return area < kAreasMax ? flags_[area].load(std::memory_order_acquire) : nullptr;
  }

  // As above, made where there are none. nullptr: no memory
  static Flag* flags_of(const void* block) noexcept {
    if (Flag* const known = known_flags_of(block)) return known;
    const std::lock_guard guard(lock_);
    if (Flag* const known = known_flags_of(block)) return known;
    auto* const made = reinterpret_cast<Flag*>(Inner::Pages::metadata(kFlagsBytes));
    flags_[address_of(block) >> kAreaShift].store(made, std::memory_order_release);
    return made;
  }

  static inline constinit sync::SpinLock lock_{};
  static inline constinit std::atomic<std::uint64_t> secret_{0};
  static inline constinit thread_local std::uint64_t state_ = 0;
  static inline constinit std::atomic<void*> waiting_[kPlaces]{};
  static inline constinit std::atomic<Flag*> flags_[kAreasMax]{};
};

}  // namespace loam::heap
