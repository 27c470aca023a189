// HeapOperations: bytes as a sequence of calls of the heap, checked against a model.
//   A byte says what, those behind it which and how much; every input is a sequence. Blocks belong to all; four threads
//   make the calls, one at a time, and an operation hands over to another: all orders of calls, none of their inside.
//   Checked: blocks are aligned, long enough, apart, and keep their contents; nothing fails but where pages were
//   refused; invariants hold where the input asks and at the end; in the end, with all blocks freed and all threads
//   gone, nothing is in use.
//   Two heaps: the open one, and the guarded one, whose checks must find nothing in calls that are right. That one also
//   tells each length exactly, its padding and seals are whole at every free, and what waits is zero when it leaves.
//   Where a freed block waits there is drawn anew in each process: an input may have to be played more than once.
//   Limits: areas of 4 MiB, kBytesMax in use, so that memory and areas run out. State that stays from input to input
//   are areas and heaps that nobody uses.
#pragma once

#include "runtime/heap/compositions/loam.hpp"
#include "tests/harness/checked_blocks.hpp"
#include "tests/harness/heaps.hpp"
#include "tests/harness/refusing_pages.hpp"

#include "runtime/platform/machine.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

namespace loam::tests {

template <heap::PageSource Pages>
using FuzzedComposition = heap::LoamComposition<NoThreadsHook, DyingFaults, Pages>;
using OpenHeap = heap::Heap<FuzzedComposition<RefusingPages>>;

// Of a type of its own, since layers are static: the two heaps share none.
struct GuardedPages : RefusingPages {};
struct GuardedComposition : FuzzedComposition<GuardedPages> {
  using Guarded = heap::Guarded<heap::Heap<FuzzedComposition<GuardedPages>>>;
  static bool guarded() noexcept { return true; }
};
using GuardedHeap = heap::Heap<GuardedComposition>;

template <class TestHeap>
class HeapOperations {
 public:
  HeapOperations() {
    for (unsigned t = 1; t < kThreads; ++t) threads_.emplace_back([this, t] { serve(t); });
  }
  HeapOperations(const HeapOperations&) = delete;
  HeapOperations& operator=(const HeapOperations&) = delete;
  ~HeapOperations() {
    stage_ = Stage::over;
    for (unsigned t = 1; t < kThreads; ++t) call(t);
    for (auto& thread : threads_) thread.join();
  }

  // nullptr, or what did not hold.
  const char* run(std::span<const std::uint8_t> input) {
    input_ = input;
    wrong_ = nullptr;
    looks_ = huge_asked_ = 0;
    played_ = {};
    RefusingPages::serve_all();
    stage_ = Stage::playing;
    for (unsigned next = play(0); next != kNobody;) next = next == 0 ? play(0) : call(next);
    RefusingPages::serve_all();
    if (wrong_ == nullptr) look();
    if (wrong_ == nullptr) blocks_.free_all();
    stage_ = Stage::leaving;
    for (unsigned t = 1; t < kThreads && wrong_ == nullptr; ++t)
      if (played_[t]) call(t);
    if (kGuarded) TestHeap::trim();  // what waited is freed by this thread, which gets a heap for it
    if (wrong_ == nullptr) TestHeap::thread_exit();
    TestHeap::trim();
    if (wrong_ == nullptr) look();
    const heap::Statistics left = TestHeap::statistics();
    if (wrong_ == nullptr && (left.committed_bytes != 0 || left.large_blocks != 0))
      wrong_ = "memory is in use though nobody holds a block";
    return wrong_;
  }

 private:
  static constexpr bool kGuarded = std::is_same_v<TestHeap, GuardedHeap>;
  using Blocks = CheckedBlocks<TestHeap, kGuarded>;

  enum class Stage { playing, leaving, over };
  static constexpr unsigned kThreads = 4, kNobody = kThreads;
  static constexpr std::size_t kBytesMax = std::size_t{24} << 20, kBlocksMax = 6000, kHugeMax = 4;
  // In one input: they take long, huge blocks where they are zeroed when they are freed.
  static constexpr unsigned kLooksMax = 8, kHugeAskedMax = kGuarded ? 4 : ~0u;

  // ---- turns: the calling thread is number 0

  // Lets a thread go on, and those that it hands over to. returns 0 or nobody: who is next when the turn comes back
  unsigned call(unsigned thread) {
    pass_to(thread);
    for (;;) {
      // acquire, as in wait_for().
      const std::uint32_t now = turn_.load(std::memory_order_acquire);
      if (now == 0 || now == kNobody) return now;
      platform::futex_wait(turn_, now);
    }
  }
  // release and acquire: who has the turn sees what the one before did.
  void pass_to(unsigned thread) {
    turn_.store(thread, std::memory_order_release);
    platform::futex_wake(turn_, kThreads);
  }
  void wait_for(unsigned thread) {
    for (std::uint32_t now; (now = turn_.load(std::memory_order_acquire)) != thread;) platform::futex_wait(turn_, now);
  }

  void serve(unsigned self) {
    for (;;) {
      wait_for(self);
      switch (stage_) {
        case Stage::playing:
          pass_to(play(self));
          break;
        case Stage::leaving:
          TestHeap::thread_exit();
          pass_to(kNobody);
          break;
        case Stage::over:
          pass_to(kNobody);
          return;
      }
    }
  }

  // ---- the input

  unsigned byte() {
    if (input_.empty()) return 0;
    const unsigned first = input_.front();
    input_ = input_.subspan(1);
    return first;
  }
  // Half of them small, some middle, few large or longer than areas serve.
  std::size_t bytes() {
    const unsigned kind = byte(), more = byte();
    if (kind < 128) return kind * 8 + more % 8;
    if (kind < 208) return (kind - 120) * 400 + more;
    if (kind < 254) return (kind - 207) * 60000 + more * 8;
    return (std::size_t{66} << 20) + more;
  }
  std::size_t index() { return (byte() * 256u + byte()) % blocks_.size(); }

  // Plays until another thread or nobody is to go on. returns which
  unsigned play(unsigned self) {
    played_[self] = true;
    while (!input_.empty() && wrong_ == nullptr) {
      const unsigned what = byte();
      if (what % 16 != 15)
        step(what);
      else if (const unsigned next = what / 16 % kThreads; next != self)
        return next;
    }
    return kNobody;
  }

  void step(unsigned what) {
    switch (what % 16) {
      case 0:
      case 1:
        return allocate(bytes());
      case 2:
        return allocate(16 * (1 + what / 16));
      case 3: {
        const std::size_t each = bytes();
        for (unsigned count = 1 + byte() * 2; count > 0 && wrong_ == nullptr; --count) allocate(each);
        return;
      }
      case 4: {
        const std::size_t wanted = bytes();
        if (fits(wanted) && wanted < Blocks::kHugeBytes) served(blocks_.allocate_zeroed(wanted));
        return;
      }
      case 5: {
        const std::size_t alignment = std::size_t{1} << byte() % 21;
        const std::size_t wanted = bytes();
        if (fits(wanted + alignment)) served(blocks_.allocate_aligned(alignment, wanted));
        return;
      }
      case 6:
      case 7:
        if (blocks_.size() > 0) blocks_.free(index());
        return;
      case 8:
        if (blocks_.size() > 0) blocks_.free_sized(index());
        return;
      case 9: {
        for (unsigned count = 1 + byte() * 2; count > 0 && blocks_.size() > 0; --count)
          blocks_.free(blocks_.size() - 1);
        return;
      }
      case 10: {  // every third, from somewhere on: slabs with holes
        if (blocks_.size() == 0) return;
        for (std::size_t i = index(), count = byte(); i < blocks_.size() && count > 0; i += 2, --count) blocks_.free(i);
        return;
      }
      case 11:
      case 12: {
        if (blocks_.size() == 0) return;
        const std::size_t at = index(), wanted = bytes();
        if (wanted > 0 && fits(wanted)) served(blocks_.reallocate(at, wanted));
        return;
      }
      case 13: {
        const unsigned after = byte(), count = byte();
        return RefusingPages::refuse(after % 8, count % 8);
      }
      default:
        break;
    }
    switch (what / 16 % 4) {
      case 0:
        return TestHeap::thread_exit();
      case 1:
        TestHeap::trim();
        return;
      default:
        if (++looks_ <= kLooksMax) look();
    }
  }

  bool fits(std::size_t more) {
    if (blocks_.size() >= kBlocksMax) return false;
    if (more < Blocks::kHugeBytes) return blocks_.bytes() + more <= kBytesMax;
    return blocks_.huge_blocks() < kHugeMax && ++huge_asked_ <= kHugeAskedMax;
  }
  void allocate(std::size_t wanted) {
    if (fits(wanted)) served(blocks_.allocate(wanted));
  }
  void served(bool was) {
    if (!was && RefusingPages::refusals() == 0) wrong_ = "no memory, though the system refused nothing";
  }

  void look() {
    wrong_ = TestHeap::verify();
    if (wrong_ == nullptr) wrong_ = blocks_.wrong();
  }

  std::span<const std::uint8_t> input_;
  Blocks blocks_;
  unsigned looks_ = 0, huge_asked_ = 0;
  std::array<bool, kThreads> played_{};
  const char* wrong_ = nullptr;
  Stage stage_ = Stage::playing;
  std::atomic<std::uint32_t> turn_{kNobody};
  std::vector<std::thread> threads_;
};

}  // namespace loam::tests
