// locals: local variables of functions that begin transactions: who accesses them in place, and which of them other
// threads share.
//   GCC writes such a local through a barrier and may read it plainly, for example to pass it by value. So its thread
//   accesses it in place, which is right as long as no transaction of another thread accesses it. A thread finds the
//   first such access itself: the address lies where another thread has said that it accesses locals in place. It
//   begins again, alone, and notes the address as shared. From then on all threads access it through the algorithm. A
//   transaction that writes a shared local of the function that began it runs alone, where in place and through the
//   algorithm are the same.
//   Invariants  L1  ranges grow only while their changer runs alone, so they are constant during an attempt.
//               L2  `unsettled` is set from the first write in place until the transaction has ended or was undone. Who
//                   finds that a local is shared waits for that, because the undo comes after the attempt's end.
//   Cost      six instructions per access. A thread runs alone once before it first writes such locals in place; each
//             local that turns out to be shared costs another such run; each later write to it by its own thread, too.
//   When not  threads that write shared locals of the function that begins the transaction most of the time: share a
//             static variable or a block instead.
// Memory orders; in brackets the failure without the pair
//   locals.A  settle()'s store(release) / the load(acquire) of the thread that waits [it reads a value that is undone]
//   Other accesses are relaxed: the gate of serial transactions orders them (L1).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace loam::itm {

// How many threads access locals in place in a part of 1 MiB of the address space, modulo 4 GiB.
extern constinit std::array<std::atomic<std::uint32_t>, 4096> locals_in_place;

class Locals {
 public:
  // Whether `address` may be another thread's local. It is not, mostly, where this is true of the heap.
  static bool may_hold(std::uintptr_t address) noexcept {
    // relaxed: L1
    return locals_in_place[static_cast<std::uint32_t>(address) >> kPieceLog2].load(std::memory_order_relaxed) != 0;
  }

  // Whether an object in the frame of the function that began the transaction is accessed in place.
  bool in_place(std::uintptr_t frame, std::uintptr_t frame_top, std::uintptr_t address,
                std::size_t bytes) const noexcept {
    return own_.covers(frame, frame_top) && !shared_.meets(address, address + bytes);
  }
  // The thread of this object writes in place in its frame. Call alone.
  void write_alone(std::uintptr_t frame, std::uintptr_t frame_top, std::uintptr_t address, std::size_t bytes) noexcept;

  void unsettle() noexcept { unsettled_.store(true, std::memory_order_relaxed); }
  void settle() noexcept {
    if (unsettled_.load(std::memory_order_relaxed)) unsettled_.store(false, std::memory_order_release);  // locals.A
  }

  // The thread has ended.
  void forget() noexcept;
  // In the child of a fork.
  static void forget_others(const Locals* own) noexcept;

  // Whether a thread other than that of `own` may access the object in place.
  static bool may_be_in_place(const Locals* own, std::uintptr_t address, std::size_t bytes) noexcept;
  // From now on no such thread does. Call alone.
  static void share(const Locals* own, std::uintptr_t address, std::size_t bytes) noexcept;

 private:
  static constexpr unsigned kPieceLog2 = 20;

  struct Range {
    std::atomic<std::uintptr_t> begin{0}, end{0};

    bool covers(std::uintptr_t from, std::uintptr_t to) const noexcept {
      return from >= begin.load(std::memory_order_relaxed) && to <= end.load(std::memory_order_relaxed);
    }
    bool meets(std::uintptr_t from, std::uintptr_t to) const noexcept {
      return from < end.load(std::memory_order_relaxed) && to > begin.load(std::memory_order_relaxed);
    }
    void set(std::uintptr_t from, std::uintptr_t to) noexcept {
      begin.store(from, std::memory_order_relaxed);
      end.store(to, std::memory_order_relaxed);
    }
    bool is_empty() const noexcept { return end.load(std::memory_order_relaxed) == 0; }
  };

  bool may_be_in_place(std::uintptr_t address, std::size_t bytes) const noexcept {
    return own_.meets(address, address + bytes) && !shared_.covers(address, address + bytes);
  }
  void share(std::uintptr_t address, std::size_t bytes) noexcept;
  void take(std::uintptr_t frame, std::uintptr_t frame_top) noexcept;
  void mark(std::uint32_t change) noexcept;

  Range own_;     // around the frames of the functions that began transactions
  Range shared_;  // around what other threads access of them
  unsigned written_alone_ = 0;
  std::atomic<bool> unsettled_{false};
  bool is_listed_ = false;
  Locals* next_ = nullptr;  // of all that ever were; never removed

  static constinit std::atomic<Locals*> all_;
};

}  // namespace loam::itm
