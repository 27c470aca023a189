// loam-c: the transactional memory as a program in C uses it, each access a call, under the algorithm of its parameter.
//   Cost  what docs/embedding.md says: beside a synchronisation of the algorithm's name, which inlines its accesses.
#pragma once

#include "workloads/syncs/shared/c_sync.hpp"

#include <algorithm>
#include <array>

namespace loam::workloads {

struct Sync : CSync {
  static const SyncDescription& description() {
    // As the library has it: norec first.
    static constexpr auto kAlgorithms = [] {
      auto names = tm::Algorithms::kNames;
      const auto first = std::find(names.begin(), names.end(), tm::Norec<false>::kDescription.name);
      std::rotate(names.begin(), first, first + 1);
      return names;
    }();
    static constexpr std::string_view kMappings[] = {"table", "shadow", "hash"};
    static constexpr auto kParameters = [] {
      constexpr auto kRest = tm_parameters(kMappings);
      std::array<ParameterSpec, kRest.size() + 1> all{};
      all[0] = ParameterSpec::choice("algorithm", kAlgorithms,
                                     "of the process, as loam_configure() takes it; the parameters of records mean "
                                     "something only under one that has them");
      std::copy(kRest.begin(), kRest.end(), all.begin() + 1);
      return all;
    }();
    static constexpr SyncDescription kDescription{.name = "loam-c",
                                                  .summary = "the C interface of the transactional memory, by calls",
                                                  .paper = "",
                                                  .kind = SyncKind::transactional,
                                                  .guarantees = "opacity; publication and privatization safe",
                                                  .threads_max = kThreadsMax - 1,
                                                  .parameters = kParameters};
    return kDescription;
  }

  static void configure(const Options& options) {
    const ParameterValues& values = options.parameters;
    const std::string_view algorithm = values.choice("algorithm");
    tm::Algorithms::with<false>(algorithm, [&]<class A>() {
      if (options.threads > A::kDescription.threads_max)
        reject("-p algorithm", algorithm, "it runs fewer threads than --threads asks for", "take --threads 1");
    });
    apply(description().name, config_with_records_of(algorithm, values));
  }
};
using BlameSync = Sync;

}  // namespace loam::workloads
