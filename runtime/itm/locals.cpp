#include "runtime/itm/locals.hpp"

#include "runtime/sync/backoff.hpp"

#include <algorithm>

namespace loam::itm {

constinit std::array<std::atomic<std::uint32_t>, 4096> locals_in_place{};
constinit std::atomic<Locals*> Locals::all_{nullptr};

namespace {

// The range starts this much below the frame, at least, so that functions called with a few more frames in between fit.
constexpr std::uintptr_t kRoomBytes = std::uintptr_t{64} << 10;
// Frames farther from each other are on two stacks.
constexpr std::uintptr_t kStackBytes = std::uintptr_t{16} << 20;
// After so many writes that ran alone, a thread tries whether the locals are still shared. If they are, one more
// transaction of another thread runs alone.
constexpr unsigned kWritesUntilForgotten = 64;
constexpr std::uintptr_t kWordBytes = 8;

}  // namespace

void Locals::mark(std::uint32_t change) noexcept {
  const std::uintptr_t begin = own_.begin.load(std::memory_order_relaxed);
  const std::uintptr_t end = own_.end.load(std::memory_order_relaxed);
  for (std::uintptr_t piece = begin >> kPieceLog2; piece <= (end - 1) >> kPieceLog2; ++piece)
    // relaxed: L1; or, when a thread has ended, it does not matter who sees it
    locals_in_place[piece % locals_in_place.size()].fetch_add(change, std::memory_order_relaxed);
}

void Locals::take(std::uintptr_t frame, std::uintptr_t frame_top) noexcept {
  if (!is_listed_) {
    is_listed_ = true;
    next_ = all_.load(std::memory_order_relaxed);
    all_.store(this, std::memory_order_relaxed);
  }
  std::uintptr_t begin = (frame - kRoomBytes) / kRoomBytes * kRoomBytes, end = frame_top;
  if (!own_.is_empty()) {
    mark(-1U);
    if (own_.meets(begin - kStackBytes, end + kStackBytes)) {
      begin = std::min(begin, own_.begin.load(std::memory_order_relaxed));
      end = std::max(end, own_.end.load(std::memory_order_relaxed));
    } else {
      shared_.set(0, 0);
    }
  }
  own_.set(begin, end);
  mark(1);
}

void Locals::write_alone(std::uintptr_t frame, std::uintptr_t frame_top, std::uintptr_t address,
                         std::size_t bytes) noexcept {
  if (!own_.covers(frame, frame_top)) take(frame, frame_top);
  if (shared_.meets(address, address + bytes) && ++written_alone_ == kWritesUntilForgotten) shared_.set(0, 0);
}

void Locals::share(std::uintptr_t address, std::size_t bytes) noexcept {
  sync::Backoff backoff;
  while (unsettled_.load(std::memory_order_acquire)) backoff.wait();  // locals.A
  std::uintptr_t begin = address / kWordBytes * kWordBytes;
  std::uintptr_t end = (address + bytes + kWordBytes - 1) / kWordBytes * kWordBytes;
  if (!shared_.is_empty()) {
    // It grows by its size at least, so that an array is found in few steps.
    const std::uintptr_t first = shared_.begin.load(std::memory_order_relaxed);
    const std::uintptr_t last = shared_.end.load(std::memory_order_relaxed);
    const std::uintptr_t size = last - first;
    begin = begin < first ? std::min(begin, first - size) : first;
    end = end > last ? std::max(end, last + size) : last;
  }
  shared_.set(begin, end);
  written_alone_ = 0;
}

void Locals::forget() noexcept {
  if (own_.is_empty()) return;
  mark(-1U);
  own_.set(0, 0);
  shared_.set(0, 0);
  written_alone_ = 0;
}

void Locals::forget_others(const Locals* own) noexcept {
  for (Locals* locals = all_.load(std::memory_order_relaxed); locals != nullptr; locals = locals->next_) {
    if (locals == own) continue;
    locals->unsettled_.store(false, std::memory_order_relaxed);
    locals->forget();
  }
}

bool Locals::may_be_in_place(const Locals* own, std::uintptr_t address, std::size_t bytes) noexcept {
  for (const Locals* locals = all_.load(std::memory_order_relaxed); locals != nullptr; locals = locals->next_)
    if (locals != own && locals->may_be_in_place(address, bytes)) return true;
  return false;
}

void Locals::share(const Locals* own, std::uintptr_t address, std::size_t bytes) noexcept {
  for (Locals* locals = all_.load(std::memory_order_relaxed); locals != nullptr; locals = locals->next_)
    if (locals != own && locals->may_be_in_place(address, bytes)) locals->share(address, bytes);
}

}  // namespace loam::itm
