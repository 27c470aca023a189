// Clusters: groups of processors between which memory is slow.
#pragma once

namespace loam::delegation {

class Clusters {
 public:
  static constexpr unsigned kMax = 64;

  // wanted: how many; 0: one for each package of the machine, or as many as there is room for
  explicit Clusters(unsigned wanted) noexcept;

  unsigned count() const noexcept { return count_; }
  // The same at every call of a thread, also after the kernel has moved it: its first one decides.
  unsigned of_this_thread() const noexcept;

 private:
  unsigned count_;
  bool by_package_;
};

}  // namespace loam::delegation
