// lock-free-epoch: Michael and Scott's lock-free queue, Treiber's stack, Michael's hash map; nodes are freed when every
// operation of their age is over.
#pragma once

#include "structures/by_epochs.hpp"
#include "structures/lock_free_map.hpp"
#include "workloads/objects/shared/lock_free_sync.hpp"
#include "workloads/objects/shared/map.hpp"

namespace loam::workloads {

struct Sync : objects::LockFreeSync<structures::ByEpochs> {
  static const SyncDescription& description() {
    static constexpr SyncDescription kDescription{
        .name = "lock-free-epoch",
        .summary = "a queue, a stack and a hash map of compare-and-swaps, with epochs",
        .paper = "PODC 1996, Treiber 1986, SPAA 2002; epochs, Fraser 2004",
        .kind = SyncKind::structure,
        .guarantees = "linearizable; lock-free until 64 MiB are held back by a thread that stands still",
        .threads_max = kThreads};
    return kDescription;
  }

  class Map : public objects::Uncounted {
   public:
    explicit Map(const objects::MapSettings& settings) : map_(settings.buckets) {}

    bool find(std::int64_t key, std::int64_t& value) const { return map_.find(key, value); }
    bool insert(std::int64_t key, std::int64_t value) { return map_.insert(key, value); }
    bool remove(std::int64_t key, std::int64_t& value) { return map_.remove(key, value); }
    objects::MapRest rest() const { return objects::rest_of_map(map_); }

   private:
    structures::LockFreeMap<structures::ByEpochs> map_;
  };
};
using BlameSync = Sync;

}  // namespace loam::workloads
