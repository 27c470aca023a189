// list: the sorted list as a set that workloads choose by name.
#pragma once

#include "structures/set_list.hpp"
#include "structures/sorted_list.hpp"

namespace loam::structures::sets {

struct List {
  static constexpr SetDescription kDescription{.name = "list", .label = "sorted list"};

  template <class>
  using Set = SortedList;
};

}  // namespace loam::structures::sets
