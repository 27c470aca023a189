// ThreadLife: how far a thread's end has gone, which decides whether the thread may get a heap. A heap that a thread gets
// after its last destructor stays with the dead thread until another one finds it (thread_heaps.hpp).
#pragma once

#include <cstdint>

namespace loam::heap {

class ThreadLife {
 public:
  // The thread's heap is handed over. last: nobody will call this again
  void end(bool last) noexcept { stage_ = last ? Stage::over : Stage::ending; }

  bool is_ending() const noexcept { return stage_ != Stage::young; }
  bool is_over() const noexcept { return stage_ == Stage::over; }

  // Called for each free by the thread while it has no heap. returns whether it gets one. The thread may be past its
  // last destructor, although it never had a heap: libc then frees a few blocks of its own. So a few blocks are freed
  // without a heap, and all blocks once the end has begun.
  bool frees_much() noexcept {
    if (is_ending()) return false;
    if (freed_ == kFew) return true;
    ++freed_;
    return false;
  }

 private:
  static constexpr std::uint8_t kFew = 16;
  enum class Stage : std::uint8_t { young, ending, over };

  Stage stage_ = Stage::young;
  std::uint8_t freed_ = 0;  // up to kFew
};

}  // namespace loam::heap
