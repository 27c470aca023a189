// c_sync: Loam's transactional memory through its C interface, as a synchronisation: what a program in C gets, over the
// same structures and applications. An operation is loam_atomically() with a function and a pointer.
//   What is counted and reported is the runtime's own, as tm_sync.hpp has it: the interface shows less.
#pragma once

#include "runtime/tm/algorithms.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/syncs/shared/c_access.hpp"
#include "workloads/syncs/shared/tm_sync.hpp"

#include <optional>
#include <type_traits>
#include <utility>

namespace loam::workloads {

struct CSync : TmSync<tm::Norec, false> {
  // What every algorithm can be told; the rest as the library has it. Without loam_config_default(), which reads LOAM_TM.
  static loam_config config_of(std::string_view algorithm, const ParameterValues& values) {
    const tm::Config defaults;
    loam_config config{};
    config.algorithm = algorithm.data();  // a literal, as all names here
    config.mapping = "table";
    config.shift = defaults.shift;
    config.records_log2 = defaults.records_log2;
    config.manager = values.choice("manager").data();
    config.privatization = values.choice("privatization").data();
    config.serialise_after = static_cast<unsigned>(values.integer("serialise_after"));
    return config;
  }

  // The same with the parameters of ownership records.
  static loam_config config_with_records_of(std::string_view algorithm, const ParameterValues& values) {
    loam_config config = config_of(algorithm, values);
    config.mapping = values.choice("mapping").data();
    config.shift = static_cast<unsigned>(values.integer("shift"));
    config.records_log2 = static_cast<unsigned>(values.integer("records_log2"));
    config.adaptive = values.choice("tuning") == "adaptive" ? 1 : 0;
    return config;
  }

  static void apply(std::string_view sync, const loam_config& config) {
    if (loam_configure(&config) != LOAM_OK) reject("--sync", sync, loam_error());
    tm::Algorithms::with<false>(config.algorithm, []<class A>() { touch_metadata<A>(); });
  }

  template <class F>
  [[gnu::always_inline]] static auto read_only(F&& f) {
    return run(f, LOAM_READ_ONLY);
  }
  template <class F>
  [[gnu::always_inline]] static auto update(F&& f) {
    return run(f, 0);
  }

  [[noreturn]] static void restart() { loam_tx_restart(loam_tx_current()); }

  static TmRecords records() {
    TmRecords found;
    tm::Algorithms::with<false>(loam_algorithm_in_use(), [&]<class A>() { found = records_of<A>(); });
    return found;
  }

 private:
  template <class F>
  [[gnu::always_inline]] static auto run(F& f, unsigned flags) {
    using Result = std::remove_cvref_t<std::invoke_result_t<F&, CAccess&>>;
    struct Call {
      F& f;
      std::optional<Result> result;
    } call{f, {}};
    loam_atomically(
        [](loam_tx* tx, void* argument) __attribute__((flatten)) {
          auto& made = *static_cast<Call*>(argument);
          CAccess access(tx);
          made.result.emplace(made.f(access));
        },
        &call, flags);
    return *call.result;
  }
};

}  // namespace loam::workloads
