// The input of bayes: records of variables that are 0 or 1, drawn from a random network of dependencies.
//   Source: the generator of STAMP's bayes, by its description; the draws are in its order.
#pragma once

#include <cstdint>
#include <vector>

namespace loam::workloads::bayes {

inline constexpr unsigned kVariablesMax = 64;

using Variables = std::uint64_t;  // a set of them, or a record: a bit each

struct DataSettings {
  unsigned variables, records, parents_max, parent_percent;
  std::uint32_t seed;
};

struct Data {
  std::vector<std::vector<unsigned>> parents;  // of each variable of the network from which the records were drawn
  std::vector<Variables> records;
};

Data make_data(const DataSettings& settings);

}  // namespace loam::workloads::bayes
