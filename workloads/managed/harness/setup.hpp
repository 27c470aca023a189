// What the synchronisations on the managed heap have in common: parameters, and the heap that a workload gets.
#pragma once

#include "runtime/gc/gc.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/sync.hpp"

#include <cstddef>
#include <span>

namespace loam::workloads::managed {

// How an executable places its logs; set by Sync::configure, before the workload runs.
struct Setup {
  gc::Placement placement = gc::Placement::dedicated;
  bool nursery = false;
  const gc::Backend* backend = nullptr;
  bool checked_allocation = false;
};
inline constinit Setup setup;

std::span<const ParameterSpec> heap_parameters() noexcept;         // of every one of them
std::span<const ParameterSpec> transaction_parameters() noexcept;  // of those with transactions: these and more

// live_bytes: what the workload has live at the most, with the logs of a transaction
gc::Settings heap_settings(const Options& options, std::size_t live_bytes);
gc::TxSettings tx_settings(const Options& options);

// The description of a synchronisation with transactions.
constexpr std::string_view kTransactionGuarantees = "opacity (opacity=checked); serializable commits";

}  // namespace loam::workloads::managed
