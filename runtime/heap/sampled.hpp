// Samples: for LOAM_MALLOC_GUARD_MS=N some blocks get a page of their own. An access beyond such a block, or to the
// block after its free, ends the process at once, with the call stacks of allocation, free and access. So do a second
// free, a free with a wrong size, and a write into the rest of the page.
//   A process samples at most every N milliseconds. Each 16th time that a thread's heap fills an empty list, the thread
//   reads the clock; if a sample is due, its next allocation, of any size, is the sample. Calls that a list serves cost
//   nothing (heap.hpp). A hardened heap checks every kLook allocations (Sampled).
//   Source: GWP-ASan, see sampled_blocks.hpp; it counts allocations instead.
//   Cost: about 15 microseconds for a sample, for two system calls and two call stacks. With N = 10 samples take .15 %
//   of the time.
//   When not: as the only means of a test. A fault is found only if its block is a sample. A thread whose lists are
//   never empty takes no samples. Blocks of more than a page, and aligned blocks, are never samples.
#pragma once

#include "runtime/heap/fault.hpp"
#include "runtime/heap/sampled_blocks.hpp"
#include "runtime/platform/machine.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

namespace loam::heap {

// Switch: the settings of the process, which never change
//   sample_gap_ns()   0: no samples
//   stack()           the CallStack of the caller
//   report(fault, address, block)   [[noreturn]]
template <class Pages, class Switch>
class Samples {
 public:
  static bool on() noexcept { return Switch::sample_gap_ns() != 0; }

  // Whether the calling thread's next allocation is to be a sample. Begins a new gap then.
  static bool is_due() noexcept {
    if (++asked_ % kAsk != 0) return false;
    const std::uint64_t now_ns = platform::monotonic_ns();
    // relaxed: of the threads that find it due one begins the gap, and it carries nothing else.
    std::uint64_t last_ns = last_ns_.load(std::memory_order_relaxed);
    return now_ns - last_ns >= Switch::sample_gap_ns() && now_ns > last_ns &&
           last_ns_.compare_exchange_strong(last_ns, now_ns, std::memory_order_relaxed);
  }

  // nullptr: the block is too long, every slot is held, or the system refuses.
  [[gnu::cold, gnu::noinline]] static void* take(std::size_t bytes) noexcept {
    if (bytes > blocks_.kBytesMax) return nullptr;
    return blocks_.take(bytes, base::mix(last_ns_.load(std::memory_order_relaxed)), Switch::stack());
  }

  static bool covers(const void* address) noexcept { return blocks_.covers(address); }

  // ---- for a covered address; the process ends if no sample begins there, or if the sample is freed

  static std::size_t bytes(const void* address) noexcept { return held(address).bytes; }

  static void resize(void* address, std::size_t bytes) noexcept { blocks_.resize(held(address), bytes); }

  [[gnu::cold, gnu::noinline]] static void give(void* address) noexcept {
    SampledBlock& block = held(address);
    expect_intact(block);
    if (!blocks_.give(block, Switch::stack())) Switch::report(Fault::double_free, address, block);
  }
  static void give_sized(void* address, std::size_t bytes) noexcept {
    if (held(address).bytes != bytes) Switch::report(Fault::wrong_size, address, held(address));
    give(address);
  }

  // ----

  // For the end of a process: checks the bytes behind samples that were never freed.
  static void check_what_is_held() noexcept {
    blocks_.for_each_held([](const SampledBlock& block) { expect_intact(block); });
  }

  static void mend_in_child() noexcept { blocks_.mend_in_child(); }

  // The sample to which an access belongs that faulted at this address; nullptr: none.
  static const SampledBlock* meant_by(const void* address) noexcept {
    return blocks_.covers(address) ? &blocks_.near(address) : nullptr;
  }

 private:
  static SampledBlock& held(const void* address) noexcept {
    SampledBlock& block = blocks_.near(address);
    if (block.start != address) Switch::report(Fault::interior, address, block);
    if (block.state.load(std::memory_order_relaxed) != SampledBlock::State::held)
      Switch::report(Fault::double_free, address, block);
    return block;
  }
  static void expect_intact(const SampledBlock& block) noexcept {
    if (const std::byte* const at = blocks_.written_beyond(block); at != nullptr)
      Switch::report(at < block.start ? Fault::write_before_start : Fault::write_past_end, at, block);
  }

  static inline constinit SampledBlocks<Pages> blocks_{};
  static constexpr unsigned kAsk = 16;  // of so many questions one looks at the clock

  static inline constinit thread_local unsigned asked_ = 0;
  static inline constinit std::atomic<std::uint64_t> last_ns_{0};  // when the gap began
};

// A guarded heap with samples. Checked: Guarded over a heap; S: Samples
template <class Checked, class S>
class Sampled : public Checked {
 public:
  [[gnu::noinline]] static void* allocate(std::size_t bytes) noexcept {
    if (--left_ < 0) [[unlikely]]
      if (void* const block = look(bytes); block != nullptr) return block;
    return Checked::allocate(bytes);
  }

  static void deallocate(void* block, PageMap::Word word) noexcept {
    if (word == 0 && S::covers(block)) [[unlikely]]
      return S::give(block);
    return Checked::deallocate(block, word);
  }

  static void deallocate_sized(void* block, std::size_t bytes) noexcept {
    if (S::covers(block)) [[unlikely]]
      return S::give_sized(block, bytes);
    return Checked::deallocate_sized(block, bytes);
  }

  static void* reallocate(void* block, std::size_t bytes) noexcept {
    if (!S::covers(block)) [[likely]]
      return Checked::reallocate(block, bytes);
    const std::size_t had = S::bytes(block);
    void* const moved = allocate(bytes);
    if (moved == nullptr) return nullptr;
    std::memcpy(moved, block, std::min(had, bytes));
    S::give(block);
    return moved;
  }

  static std::size_t usable_bytes(const void* block) noexcept {
    return S::covers(block) ? S::bytes(block) : Checked::usable_bytes(block);
  }

 private:
  static constexpr std::int32_t kLook = 32;

  [[gnu::cold, gnu::noinline]] static void* look(std::size_t bytes) noexcept {
    left_ = S::on() ? kLook : std::numeric_limits<std::int32_t>::max();
    return S::on() && bytes != 0 && S::is_due() ? S::take(bytes) : nullptr;  // none of no bytes is accessible
  }

  static inline constinit thread_local std::int32_t left_ = 0;  // allocations before the next look
};

}  // namespace loam::heap
