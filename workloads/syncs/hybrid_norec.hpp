// hybrid-norec: each operation is a hardware transaction of plain code, or one of norec, at the same time as others.
//   runtime/tm/hardware/hybrid.hpp has the method and its limits.
#pragma once

#include "runtime/tm/hardware/availability.hpp"
#include "runtime/tm/hardware/hybrid.hpp"
#include "workloads/harness/sync.hpp"
#include "workloads/syncs/shared/tm_sync.hpp"

namespace loam::workloads {

struct Sync : TmSync<tm::Norec, false> {
  static const SyncDescription& description() {
    static const SyncDescription kDescription = [] {
      SyncDescription d = TmSync::description();
      d.name = "hybrid-norec";
      d.summary = "hardware transactions of plain code beside software ones of norec";
      d.paper = "Hybrid NOrec, ASPLOS 2011";
      d.blame = false;
      d.needs = "hardware transactions";
      d.reason_against = tm::hardware::reason_against;
      return d;
    }();
    return kDescription;
  }

  template <class F>
  [[gnu::always_inline]] static auto read_only(F&& f) {
    return tm::hardware::Hybrid::read_only(f);
  }
  template <class F>
  [[gnu::always_inline]] static auto update(F&& f) {
    return tm::hardware::Hybrid::update(f);
  }

  [[noreturn]] static void restart() {
    if (platform::in_transaction()) platform::transaction_abort<kAgainInSoftware>();
    TmSync::restart();
  }

  static TmRecords records() {
    TmRecords found = TmSync::records();
    found.hardware = true;
    return found;
  }

 private:
  static constexpr std::uint8_t kAgainInSoftware = 1;
};
using BlameSync = Sync;

}  // namespace loam::workloads
