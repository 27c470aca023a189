// SampledBlocks: a few blocks on pages of their own, each between two inaccessible (closed) pages. A freed block's page
// is closed as well, until its slot is needed again: after kSlots other samples at the earliest.
//   Layout: closed page, page of slot 0, closed page, page of slot 1 ... closed page. A block lies at the end of its page,
//   or, one time in four, at its begin, where an access in front of it is found. The other bytes of the page, in front of
//   the block and behind it, are padding (padding.hpp), looked at when the block is freed.
//   Source: GWP-ASan (Serebryany et al., "GWP-ASan: sampling-based detection of memory-safety bugs in production", 2023).
//   Cost: two system calls for each block; 2 MiB of addresses, one page for each block that is held.
//   P1 a slot is in the queue of free slots exactly while its block is not held.
#pragma once

#include "runtime/base/bits.hpp"
#include "runtime/heap/geometry.hpp"
#include "runtime/heap/padding.hpp"
#include "runtime/sync/owned_lock.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

namespace loam::heap {

// Where a thread was: return addresses, the innermost first.
struct CallStack {
  static constexpr unsigned kMax = 24;

  void* frames[kMax];
  unsigned count = 0;
  unsigned thread = 0;  // the kernel's number; 0: nobody has been here
};

struct SampledBlock {
  enum class State : std::uint8_t { unused, held, freed };

  std::byte* start = nullptr;
  std::size_t bytes = 0;  // as asked for
  CallStack allocated{}, freed{};
  std::atomic<State> state{State::unused};
};

template <class Pages>
class SampledBlocks {
 public:
  static constexpr unsigned kSlots = 256;
  static constexpr std::size_t kBytesMax = platform::kPageBytes;  // of any kernel

  // bytes: kBytesMax at most; draw: random
  // nullptr: every slot is held, or the system refuses
  void* take(std::size_t bytes, std::uint64_t draw, const CallStack& stack) noexcept {
    SampledBlock* const block = take_slot();
    if (block == nullptr) return nullptr;
    std::byte* const page = page_of(*block);
    if (!Pages::protect(page, platform::page_bytes(), true)) return nullptr;  // the slot is lost
    const std::size_t room = base::round_up(std::max<std::size_t>(bytes, 1), kBlockAlignment);
    block->start = draw % 4 == 0 ? page : page + platform::page_bytes() - room;
    block->allocated = stack;
    block->freed.thread = 0;
    std::fill(page, block->start, kPad);
    resize(*block, bytes);
    // relaxed, here and in give(): a thread that frees the block has received it by a path with the right order.
    block->state.store(SampledBlock::State::held, std::memory_order_relaxed);
    return block->start;
  }

  // Whether the address lies in the slots or in a page between them.
  bool covers(const void* address) const noexcept {
    // pages.A: pairs with the release in make().
    const std::byte* const pages = pages_.load(std::memory_order_acquire);
    return pages != nullptr && address_of(address) - address_of(pages) < pages_bytes();
  }

  // The block that was meant by an address that is covered: of a page between two, the nearer one.
  SampledBlock& near(const void* address) noexcept {
    const std::size_t half =
        (address_of(address) - address_of(pages_.load(std::memory_order_relaxed))) /
        (platform::page_bytes() / 2);  // 0, 1: the first closed page; 2 to 5: slot 0 and half pages
    const std::size_t slot = half == 0 ? 0 : (half - 1) / 4;
    return slots_[std::min<std::size_t>(slot, kSlots - 1)];
  }

  // A block that is held, in its place: its length is another.
  void resize(SampledBlock& block, std::size_t bytes) noexcept {
    block.bytes = bytes;
    std::fill(block.start + bytes, page_of(block) + platform::page_bytes(), kPad);
  }

  // The first byte of the page that was written beyond a block that is held; nullptr: none.
  const std::byte* written_beyond(const SampledBlock& block) const noexcept {
    const std::byte* const page = page_of(block);
    const std::byte* const page_end = page + platform::page_bytes();
    const std::byte* const end = block.start + block.bytes;
    const auto is_written = [](std::byte byte) { return byte != kPad; };
    if (const auto* at = std::find_if<const std::byte*>(page, block.start, is_written); at != block.start) return at;
    const auto* const at = std::find_if(end, page_end, is_written);
    return at != page_end ? at : nullptr;
  }

  // A block that was held. returns false where another thread gives it in the same moment
  bool give(SampledBlock& block, const CallStack& stack) noexcept {
    auto held = SampledBlock::State::held;
    if (!block.state.compare_exchange_strong(held, SampledBlock::State::freed, std::memory_order_relaxed)) return false;
    block.freed = stack;
    std::byte* const page = page_of(block);
    Pages::purge(page, platform::page_bytes());
    Pages::protect(page, platform::page_bytes(), false);
    const std::lock_guard guard(lock_);
    queue_[(first_ + count_) % kSlots] = static_cast<std::uint16_t>(&block - slots_);
    ++count_;
    return true;
  }

  // visit(block), for each that is held. For the end of a process.
  template <class Visit>
  void for_each_held(Visit visit) noexcept {
    for (unsigned i = 0; i < kSlots && slots_ != nullptr; ++i)
      if (slots_[i].state.load(std::memory_order_relaxed) == SampledBlock::State::held) visit(slots_[i]);
  }

  // Call it in the child of a fork. Slots that another thread of the parent was taking or freeing are lost.
  void mend_in_child() noexcept {
    if (lock_.is_orphaned()) lock_.unlock();
  }

 private:
  static constexpr std::byte kPad{static_cast<std::uint8_t>(kPadding)};
  static std::size_t pages_bytes() noexcept { return (2 * kSlots + 1) * platform::page_bytes(); }

  SampledBlock* take_slot() noexcept {
    const std::lock_guard guard(lock_);
    if (slots_ == nullptr && !make()) return nullptr;
    if (count_ == 0) return nullptr;
    SampledBlock* const block = &slots_[queue_[first_]];
    // One store makes the slot ours: a fork in between finds it taken, or in the queue.
    --count_;
    first_ = (first_ + 1) % kSlots;
    return block;
  }

  // Once, under the lock.
  bool make() noexcept {
    if (refused_) return false;
    auto* const slots = Pages::metadata(base::round_up(kSlots * sizeof(SampledBlock), platform::page_bytes()));
    auto* const pages = Pages::metadata(pages_bytes());
    refused_ = slots == nullptr || pages == nullptr || !Pages::protect(pages, pages_bytes(), false);
    if (refused_) return false;
    slots_ = reinterpret_cast<SampledBlock*>(slots);
    for (unsigned i = 0; i < kSlots; ++i) {
      ::new (&slots_[i]) SampledBlock;
      queue_[i] = static_cast<std::uint16_t>(i);
    }
    count_ = kSlots;
    // pages.A: who finds the pages finds the slots.
    pages_.store(pages, std::memory_order_release);
    return true;
  }

  std::byte* page_of(const SampledBlock& block) const noexcept {
    const auto slot = static_cast<std::size_t>(&block - slots_);
    return pages_.load(std::memory_order_relaxed) + (2 * slot + 1) * platform::page_bytes();
  }

  sync::OwnedLock lock_;
  SampledBlock* slots_ = nullptr;
  std::atomic<std::byte*> pages_{nullptr};
  bool refused_ = false;
  unsigned first_ = 0, count_ = 0;
  std::uint16_t queue_[kSlots]{};  // free slots, the one that has been free for longest first
};

}  // namespace loam::heap
