// The result of a structure's verify().
#pragma once

#include <cstddef>
#include <string_view>

namespace loam::structures {

struct Verdict {
  std::size_t elements = 0;
  std::string_view broken = {};  // the first invariant found broken, by its label; empty if all hold

  bool holds() const noexcept { return broken.empty(); }
};

}  // namespace loam::structures
