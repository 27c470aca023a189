// hash: the hash set as a set that workloads choose by name.
#pragma once

#include "structures/hash_set.hpp"
#include "structures/set_list.hpp"

namespace loam::structures::sets {

struct Hash {
  static constexpr SetDescription kDescription{.name = "hash", .label = "hash set"};

  template <class HashFunction>
  using Set = HashSet<HashFunction>;
};

}  // namespace loam::structures::sets
