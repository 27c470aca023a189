#include "runtime/reclaim/epoch.hpp"

#include "runtime/base/check.hpp"
#include "runtime/base/points.hpp"
#include "runtime/platform/pages.hpp"
#include "runtime/sync/backoff.hpp"

#include <algorithm>
#include <mutex>

#include <unistd.h>

namespace loam::reclaim {

void Limbo::grow_or_die() noexcept {
  if (ring_ == nullptr) return reserve_or_die();
  LOAM_CHECK(can_grow(),
             "reclaim: {} blocks are held back; a reader has been inside since the first of them was retired",
             blocks());
  // An entry's place is its index modulo the capacity: half of the entries move up by the old one.
  for (std::uint64_t index = head_; index != tail_ + proposed_; ++index)
    if ((index & capacity_) != 0) ring_[(index & (capacity_ - 1)) + capacity_] = at(index);
  capacity_ *= 2;
}

void Limbo::reserve_or_die() noexcept {
  capacity_ = kCapacityAtFirst;
  reserved_ = kReservedMax;
  ring_ = static_cast<Retired*>(platform::map_lazy(reserved_ * sizeof(Retired), {.huge_pages = false}));
  if (ring_ != nullptr) return;
  reserved_ = kReservedLeast;
  ring_ = static_cast<Retired*>(
      platform::map_lazy_or_die(reserved_ * sizeof(Retired), "reclaim: limbo list", {.huge_pages = false}));
}

void Limbo::make_room(std::size_t wanted) noexcept {
  while (capacity_ - blocks() - proposed_ < wanted && can_grow()) {
    const std::size_t had = capacity_;
    grow_or_die();
    // Touches the new pages. They may hold entries already, so each byte is written with the value that was read.
    const auto begin = reinterpret_cast<std::uintptr_t>(ring_ + had),
               end = reinterpret_cast<std::uintptr_t>(ring_ + capacity_);
    for (std::uintptr_t at = begin; at < end; at = (at | (platform::kPageBytes - 1)) + 1) {
      auto* const byte = reinterpret_cast<volatile std::byte*>(at);
      *byte = *byte;
    }
  }
}

void Limbo::stamp(std::uint64_t stamp) noexcept {
  if (batches_ == kBatchesMax) --batches_;
  batch_[batches_++] = {tail_, stamp};  // E1, E3
}

void Limbo::ripen(std::uint64_t oldest) noexcept {
  unsigned ripe = 0;
  while (ripe < batches_ && batch_[ripe].stamp <= oldest) ripe_ = batch_[ripe++].end;  // E2
  batches_ -= ripe;
  std::copy(batch_ + ripe, batch_ + ripe + batches_, batch_);
}

unsigned Domain::acquire_slot() noexcept {
  const auto slot = slots_.acquire();
  LOAM_CHECK(slot.has_value(), "reclaim: {} threads are registered already, the most that one process may have",
             kSlots);
  return *slot;
}

void Domain::attach(unsigned slot, Participant& self) noexcept {
  // epoch.B: release, because a scan that still looks at the slot's last thread may find this value: the reads of that
  // thread happen before it.
  self.slot.store(global_.load(std::memory_order_acquire) | kIdleBit, std::memory_order_release);
  // E2: a scan that does not find this thread yet has advanced the epoch before this exchange (both are read-modify-
  // writes, seq_cst for the StoreLoad on either side), so this thread will see what that scan frees as unlinked.
  participants_[slot].exchange(&self, std::memory_order_seq_cst);
}

void Domain::release_slot(unsigned slot, Limbo& limbo) noexcept {
  Participant& self = *participants_[slot].load(std::memory_order_relaxed);  // relaxed: stored by this thread
  LOAM_ASSERT(is_idle(self.slot.load(std::memory_order_relaxed)), "reclaim: slot {} is released inside a read section",
              slot);
  // A thread that leaves nothing, and finds nothing left by others, need not interrupt every core.
  // relaxed: a hint
  const bool is_clean = limbo.blocks() == 0 && orphan_blocks_.load(std::memory_order_relaxed) == 0;
  if (!is_clean && reclaim(self, limbo) > 0) {
    const std::lock_guard guard(orphans_lock_);
    for (; limbo.head_ != limbo.tail_; ++limbo.head_) {
      const Retired& entry = limbo.at(limbo.head_);
      orphans_.propose(entry.block, entry.deleter, entry.bytes);
      orphans_.accept();
    }
    count_orphans();
  }
  if (limbo.ring_ != nullptr) platform::unmap(limbo.ring_, limbo.reserved_ * sizeof(Retired));
  limbo = Limbo{};
  participants_[slot].store(nullptr, std::memory_order_release);  // epoch.B
  slots_.release(slot);
}

template <class Call>
void Domain::for_each_other(const Participant& self, Call&& call) const {
  for_each_slot([&](unsigned slot) {
    const Participant* const other = participants_[slot].load(std::memory_order_seq_cst);  // epoch.B; attach()
    if (other != nullptr && other != &self) call(*other);
  });
}

// The oldest epoch that a thread other than `self` has announced last; idle ones are passed over unless they count.
std::uint64_t Domain::oldest_epoch(const Participant& self, bool idle_counts) const noexcept {
  std::uint64_t oldest = kNobody;
  for_each_other(self, [&](const Participant& other) {
    const std::uint64_t value = other.slot.load(std::memory_order_seq_cst);  // epoch.B
    if (idle_counts || !is_idle(value)) oldest = std::min(oldest, announced_epoch(value));
  });
  return oldest;
}

void Domain::scan(Participant& self, Limbo& limbo, Barrier barrier) noexcept {
  limbo.since_scan_ = 0;
  if (orphan_blocks_.load(std::memory_order_relaxed) > 0) adopt_orphans(limbo);  // relaxed: a hint
  const unsigned batches_before = limbo.batches_;
  // epoch.A: release publishes the unlinking of all that is in the list; acquire carries on what earlier advances did;
  // seq_cst for the StoreLoad against attach().
  const std::uint64_t now = global_.fetch_add(1, std::memory_order_seq_cst) + 1;
  limbo.stamp(now);
  LOAM_POINT("reclaim.advanced");
  limbo.ripen(oldest_epoch(self, true));
  // What was stamped a whole batch ago and is still not ripe waits for a thread that does not move: idle, or inside for
  // long. Only then the interruption is worth its price.
  if (barrier == Barrier::use || (batches_before > 0 && limbo.batches_ > 1)) {
    platform::announce_heavy();  // epoch.A: from here on, an idle slot means an idle thread, or one that began later
    limbo.ripen(oldest_epoch(self, false));
  }
}

std::size_t Domain::reclaim(Participant& self, Limbo& limbo) noexcept {
  LOAM_ASSERT(is_idle(self.slot.load(std::memory_order_relaxed)), "reclaim: called inside a read section");
  scan(self, limbo, Barrier::use);
  const std::uint64_t ripe = limbo.ripe_ - limbo.head_;
  free_ripe(limbo, ripe);
  return limbo.blocks();
}

void Domain::wait_for_idle(const Participant& self) const noexcept {
  for_each_other(self, [](const Participant& other) {
    sync::Backoff backoff;
    while (!is_idle(other.slot.load(std::memory_order_seq_cst))) backoff.wait();  // epoch.B
  });
}

bool Domain::is_idle_within(const Participant& self, std::uint64_t limit_ns) const noexcept {
  const std::uint64_t deadline = platform::monotonic_ns() + limit_ns;
  bool all = true;
  for_each_other(self, [&](const Participant& other) {
    sync::Backoff backoff;
    while (all && !is_idle(other.slot.load(std::memory_order_seq_cst))) {  // epoch.B
      backoff.wait();
      all = platform::monotonic_ns() < deadline;
    }
  });
  return all;
}

void Domain::wait_for_older(const Participant& self) noexcept {
  // epoch.A: as in scan(); who announces this epoch or a later one has begun after the advance.
  const std::uint64_t now = global_.fetch_add(1, std::memory_order_seq_cst) + 1;
  platform::announce_heavy();
  LOAM_POINT("reclaim.advanced");
  for_each_other(self, [now](const Participant& other) {
    const auto is_older = [now](std::uint64_t value) { return !is_idle(value) && announced_epoch(value) < now; };
    sync::Backoff backoff;
    while (is_older(other.slot.load(std::memory_order_seq_cst))) backoff.wait();  // epoch.B
  });
}

void Domain::adopt_orphans(Limbo& limbo) noexcept {
  if (!orphans_lock_.try_lock()) return;
  const std::lock_guard guard(orphans_lock_, std::adopt_lock);
  // E3: orphans go to the end of the list without a stamp and get a new one: late, never early.
  for (; orphans_.head_ != orphans_.tail_ && (!limbo.is_full() || limbo.can_grow()); ++orphans_.head_) {
    const Retired& entry = orphans_.at(orphans_.head_);
    orphans_.bytes_ -= entry.bytes;
    limbo.propose(entry.block, entry.deleter, entry.bytes);
    limbo.accept();
  }
  count_orphans();
}

void Domain::count_orphans() noexcept {
  // relaxed: hints; the lock orders
  orphan_blocks_.store(orphans_.blocks(), std::memory_order_relaxed);
  orphan_bytes_.store(orphans_.bytes(), std::memory_order_relaxed);
}

void Domain::forget_slot(unsigned slot) noexcept {
  participants_[slot].store(nullptr, std::memory_order_relaxed);  // relaxed: the process has one thread
  slots_.release(slot);
}

bool Domain::over_limit(const Limbo& limbo) const noexcept {
  return limbo.bytes() > held_bytes_max_.load(std::memory_order_relaxed);  // relaxed: a bound, not a promise
}

void Domain::settle_slow(Participant& self, Limbo& limbo) noexcept {
  scan(self, limbo, Barrier::avoid);
  if (!over_limit(limbo)) return;
  const std::uint64_t deadline = platform::monotonic_ns() + limits_.wait_ns_max;
  sync::Backoff backoff;
  while (reclaim(self, limbo) > 0 && over_limit(limbo)) {
    backoff.wait();
    if (platform::monotonic_ns() < deadline) continue;
    stalls_.fetch_add(1, std::memory_order_relaxed);
    char buffer[256];
    const auto text = base::format_to(
        buffer, "loam: a transaction has run for over {} ms and holds back {} bytes of freed memory; going on\n",
        limits_.wait_ns_max / 1'000'000, limbo.bytes());
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
    held_bytes_max_.store(limbo.bytes() * 2, std::memory_order_relaxed);
    return;
  }
}

}  // namespace loam::reclaim
