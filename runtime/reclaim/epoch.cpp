#include "runtime/reclaim/epoch.hpp"

#include "runtime/base/check.hpp"
#include "runtime/base/points.hpp"
#include "runtime/platform/pages.hpp"
#include "runtime/sync/backoff.hpp"

#include <algorithm>
#include <mutex>

#include <unistd.h>

namespace loam::reclaim {

unsigned Domain::acquire_slot() noexcept {
  const auto slot = slots_.acquire();
  LOAM_CHECK(slot.has_value(), "reclaim: {} threads are registered already, the most that one process may have", kSlots);
  return *slot;
}

void Domain::release_slot(unsigned slot, Limbo& limbo) noexcept {
  LOAM_ASSERT(participants_[slot].epoch.load(std::memory_order_relaxed) == kIdle,
              "reclaim: slot {} is released inside a read section", slot);
  if (reclaim(limbo) > 0) {
    const std::lock_guard guard(orphans_lock_);
    for (; limbo.head_ != limbo.tail_; ++limbo.head_) append(orphans_, limbo.at(limbo.head_));
    orphan_blocks_.store(orphans_.blocks(), std::memory_order_relaxed);  // relaxed: a hint; the lock orders
  }
  if (limbo.ring_ != nullptr) platform::unmap(limbo.ring_, Limbo::kCapacity * sizeof(Retired));
  limbo = Limbo{};
  slots_.release(slot);
}

void Domain::append(Limbo& limbo, const Retired& entry) noexcept {
  if (limbo.ring_ == nullptr) [[unlikely]]
    limbo.ring_ =
        static_cast<Retired*>(platform::map_lazy_or_die(Limbo::kCapacity * sizeof(Retired), "reclaim: limbo list"));
  LOAM_CHECK(limbo.blocks() < Limbo::kCapacity,
             "reclaim: {} blocks are held back; a reader has been inside since the first of them was retired",
             limbo.blocks());
  limbo.at(limbo.tail_++) = entry;
  limbo.bytes_ += entry.bytes;
}

void Domain::retire(Limbo& limbo, void* block, Deleter deleter, std::size_t bytes) noexcept {
  append(limbo, {block, deleter, 0, bytes});  // E1: the stamp comes with the next advance
  // Large blocks make a batch due sooner: 512 of 4 KiB weigh as much as 1024 small ones.
  limbo.since_scan_ += 1 + bytes / platform::kPageBytes;
}

std::uint64_t Domain::oldest_announced() noexcept {
  platform::announce_heavy();  // epoch.A: every reader's announcement is visible, or the reader began after this
  std::uint64_t oldest = kIdle;
  const unsigned end = slots_.high_water();
  for (unsigned slot = 0; slot < end; ++slot)
    oldest = std::min(oldest, participants_[slot].epoch.load(std::memory_order_acquire));  // epoch.B
  return oldest;
}

std::size_t Domain::reclaim(Limbo& limbo) noexcept {
  limbo.since_scan_ = 0;
  if (orphan_blocks_.load(std::memory_order_relaxed) > 0) adopt_orphans(limbo);  // relaxed: a hint
  if (limbo.blocks() == 0) return 0;
  // epoch.A: release publishes the unlinking of all that is in the list; acquire carries on what earlier advances did.
  const std::uint64_t now = global_.fetch_add(1, std::memory_order_acq_rel) + 1;
  for (; limbo.stamped_ != limbo.tail_; ++limbo.stamped_) limbo.at(limbo.stamped_).stamp = now;  // E1, E3
  LOAM_POINT("reclaim.advanced");
  const std::uint64_t oldest = oldest_announced();
  std::uint64_t freed = 0;
  while (limbo.head_ != limbo.tail_ && limbo.at(limbo.head_).stamp <= oldest) {  // E2
    const Retired entry = limbo.at(limbo.head_++);
    limbo.bytes_ -= entry.bytes;
    entry.deleter(entry.block);
    ++freed;
  }
  freed_.fetch_add(freed, std::memory_order_relaxed);  // relaxed: a statistic
  return limbo.blocks();
}

void Domain::adopt_orphans(Limbo& limbo) noexcept {
  if (!orphans_lock_.try_lock()) return;
  const std::lock_guard guard(orphans_lock_, std::adopt_lock);
  // E3: orphans go to the end of the list without a stamp and get a new one: late, never early.
  for (; orphans_.head_ != orphans_.tail_ && limbo.blocks() < Limbo::kCapacity; ++orphans_.head_) {
    orphans_.bytes_ -= orphans_.at(orphans_.head_).bytes;
    append(limbo, orphans_.at(orphans_.head_));
  }
  orphan_blocks_.store(orphans_.blocks(), std::memory_order_relaxed);  // relaxed: a hint; the lock orders
}

bool Domain::over_limit(const Limbo& limbo) const noexcept {
  return limbo.bytes_ > held_bytes_max_.load(std::memory_order_relaxed);  // relaxed: a bound, not a promise
}

void Domain::settle_slow(Limbo& limbo) noexcept {
  reclaim(limbo);
  if (!over_limit(limbo)) return;
  const std::uint64_t deadline = platform::monotonic_ns() + limits_.wait_ns_max;
  sync::Backoff backoff;
  while (over_limit(limbo)) {
    backoff.wait();
    reclaim(limbo);
    if (platform::monotonic_ns() < deadline) continue;
    stalls_.fetch_add(1, std::memory_order_relaxed);
    char buffer[256];
    const auto text = base::format_to(
        buffer, "loam: a transaction has run for over {} ms and holds back {} bytes of freed memory; going on\n",
        limits_.wait_ns_max / 1'000'000, limbo.bytes_);
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
    held_bytes_max_.store(limbo.bytes_ * 2, std::memory_order_relaxed);
    return;
  }
}

}  // namespace loam::reclaim
