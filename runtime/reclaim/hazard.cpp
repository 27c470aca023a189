#include "runtime/reclaim/hazard.hpp"

#include "runtime/base/check.hpp"
#include "runtime/base/points.hpp"
#include "runtime/platform/pages.hpp"

#include <algorithm>

namespace loam::reclaim {
namespace {

// As many retired blocks as a scan costs looks: so a free costs a constant number of them (Michael's R >= 2 H).
constexpr std::size_t kBatchMin = 64;

}  // namespace

HazardDomain::Member* HazardDomain::members() noexcept {
  // acquire, and release below: the mapping's bytes are zero either way; a pair as any other published address.
  Member* all = members_.load(std::memory_order_acquire);
  if (all != nullptr) return all;
  auto* const mapped =
      static_cast<Member*>(platform::map_lazy_or_die(kSlots * sizeof(Member), "reclaim: hazard pointers"));
  if (members_.compare_exchange_strong(all, mapped, std::memory_order_acq_rel, std::memory_order_acquire))
    return mapped;
  platform::unmap(mapped, kSlots * sizeof(Member));
  return all;
}

HazardDomain::Member& HazardDomain::join() noexcept {
  Member* const all = members();
  const auto slot = slots_.acquire();
  LOAM_CHECK(slot.has_value(), "reclaim: {} threads are registered already, the most that one process may have",
             kSlots);
  Member& self = all[*slot];
  if (self.scan_at == 0) self.scan_at = kBatchMin;
  return self;
}

void HazardDomain::leave(Member& self) noexcept {
  clear(self);
  if (self.retired != 0) scan(self);
  slots_.release(static_cast<unsigned>(&self - members()));
}

void HazardDomain::scan(Member& self) noexcept {
  LOAM_POINT("hazard: before a scan");
  platform::announce_heavy();  // hazard.A
  // A thread that joins after this begins to read after the blocks at hand were unlinked.
  const unsigned end = slots_.high_water();
  const Member* const all = members();
  const void* named[std::size_t{kSlots} * kPlaces];
  std::size_t count = 0;
  for (unsigned slot = 0; slot < end; ++slot)
    for (const auto& place : all[slot].places)
      if (const void* const block = place.load(std::memory_order_acquire)) named[count++] = block;  // hazard.B
  std::sort(named, named + count);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < self.retired; ++i) {
    void* const block = self.blocks[i];
    if (std::binary_search(named, named + count, block))
      self.blocks[kept++] = block;
    else
      deleter_(block);  // H1
  }
  self.retired = kept;
  // At most all places name one each, so at least half of the list is free again.
  self.scan_at = std::max(kBatchMin, std::size_t{end} * kPlaces * 2);
}

std::size_t HazardDomain::scan_all() noexcept {
  std::size_t held = 0;
  for (unsigned slot = 0; slot < slots_.high_water(); ++slot) {
    Member& member = members()[slot];
    if (member.retired != 0) scan(member);
    held += member.retired;
  }
  return held;
}

}  // namespace loam::reclaim
