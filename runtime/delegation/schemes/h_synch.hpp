// h-synch: a list of clients for each cluster of processors; its combiner takes a lock that all lists share.
//   Source      Fatourou, Kallimanis: "Revisiting the combining synchronization technique", PPoPP 2012.
//   How         Clients of a package queue up in its list, so that requests do not cross packages; the list's combiner
//               holds the lock from its own operation to its last one for others. A thread counts to the package that
//               it runs on at its first call.
//   Guarantees  first come, first served within a cluster, and among combiners; D1 to D3.
//   Cost        that of cc-synch and of an mcs lock per turn.
//   When not    one package: there it is cc-synch and a lock that nobody else takes.
//   Orders      list.A, list.B (parts/combining_list.hpp); mcs.A, mcs.B (schemes/mcs.hpp) from turn to turn.
#pragma once

#include "runtime/delegation/parts/clusters.hpp"
#include "runtime/delegation/parts/combining_list.hpp"
#include "runtime/delegation/schemes/mcs.hpp"

#include <array>
#include <optional>

namespace loam::delegation {

template <Waiting W = SpinThenSleep>
class HSynch {
 public:
  static constexpr Description kDescription{.name = "h-synch",
                                            .summary = "combining over a queue of clients per package",
                                            .paper = "H-Synch, PPoPP 2012",
                                            .guarantees = "mutual exclusion; first come, first served within a package",
                                            .means = Means::combining,
                                            .has_clusters = true};
  static constexpr bool kSleeps = W::kSleeps;

  explicit HSynch(const Settings& settings = {}) noexcept : lock_(settings), clusters_(settings.clusters) {
    for (unsigned i = 0; i < clusters_.count(); ++i) lists_[i].emplace(settings);
  }

  template <class F>
  std::invoke_result_t<F&> apply(F&& f) {
    if constexpr (!kIsOnBehalf<F>) {
      if (Executing::anything()) [[unlikely]]
        return apply_on_behalf(*this, f);
    }
    return lists_[clusters_.of_this_thread()]->apply(this, f, [this] { return typename Mcs<W>::Guard(lock_); });
  }

 private:
  Mcs<W> lock_;
  const Clusters clusters_;
  std::array<std::optional<CombiningList<W>>, Clusters::kMax> lists_;
};

}  // namespace loam::delegation
