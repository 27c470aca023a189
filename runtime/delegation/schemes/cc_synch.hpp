// cc-synch: clients queue by one exchange; the first executes the operations of those behind it, then hands over.
//   Source      Fatourou, Kallimanis: "Revisiting the combining synchronization technique", PPoPP 2012 (the paper's cc).
//   How         A client swaps a fresh cell into the tail and writes its request into the cell that it gets. So the
//               last cell is always empty, and tells the client that gets it whether it becomes the combiner. Cells
//               move from thread to thread.
//   Guarantees  first come, first served; a combiner does at most turn_max operations for others; D1 to D3.
//   Cost        one exchange. A client that has to wait also gets two cache lines from another core.
//   When not    a client that is taken off its processor between exchange and link holds up those behind it.
//   Orders      list.A, list.B and waiting.A, in parts/combining_list.hpp.
#pragma once

#include "runtime/delegation/parts/combining_list.hpp"

namespace loam::delegation {

template <Waiting W = SpinThenSleep>
class CcSynch {
 public:
  static constexpr Description kDescription{.name = "cc-synch",
                                            .summary = "combining over a queue of clients",
                                            .paper = "CC-Synch, PPoPP 2012",
                                            .guarantees = "mutual exclusion; first come, first served",
                                            .means = Means::combining};
  static constexpr bool kSleeps = W::kSleeps;

  explicit CcSynch(const Settings& settings = {}) noexcept : list_(settings) {}

  template <class F>
  std::invoke_result_t<F&> apply(F&& f) {
    if constexpr (!kIsOnBehalf<F>) {
      if (Executing::anything()) [[unlikely]]
        return apply_on_behalf(*this, f);
    }
    return list_.apply(this, f, [] { return Nothing{}; });
  }

 private:
  struct Nothing {};

  CombiningList<W> list_;
};

}  // namespace loam::delegation
