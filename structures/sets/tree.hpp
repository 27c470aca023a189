// tree: the red-black tree as a set that workloads choose by name.
#pragma once

#include "structures/red_black_tree.hpp"
#include "structures/set_list.hpp"

namespace loam::structures::sets {

struct Tree {
  static constexpr SetDescription kDescription{.name = "tree", .label = "red-black tree"};

  template <class>
  using Set = RedBlackTree;
};

}  // namespace loam::structures::sets
