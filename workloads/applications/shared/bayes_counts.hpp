// Counts: how many records have given values of given variables, from a tree that holds the answers; and the likelihood
// of a variable given others.
//   Source: AD-trees, Moore and Lee, Journal of Artificial Intelligence Research 1998: a node is a set of values, and has
//   a child for each later variable and value, but for the variable's commonest value, whose counts follow from the others.
//   Cost: memory grows with the number of different records; a count visits up to two nodes per variable, and twice as
//   many for each one that is asked for its commonest value.
//   Built plainly by one thread; read by all after that.
#pragma once

#include "structures/plain_access.hpp"
#include "workloads/applications/shared/bayes_data.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace loam::workloads::bayes {

// Values of variables: of each in `known` its bit in `values`.
struct Assignment {
  Variables known = 0, values = 0;
};

class Counts {
 public:
  Counts(const std::vector<Variables>& records, unsigned variables);
  ~Counts();
  Counts(const Counts&) = delete;
  Counts& operator=(const Counts&) = delete;

  std::uint32_t count(const Assignment& asked) const noexcept { return count(root_, 0, asked); }
  std::uint32_t records() const noexcept { return static_cast<std::uint32_t>(record_count_); }
  unsigned variables() const noexcept { return variables_; }
  std::uint64_t blocks() const noexcept { return blocks_; }

  // The sum over all values of `variable` and its parents of their share of the records times the logarithm of the
  // variable's share among those with the parents' values. parents: ascending, without the variable.
  LOAM_PURE_IN_TRANSACTIONS float log_likelihood(unsigned variable, std::span<const unsigned> parents) const noexcept;

 private:
  // `rare[i]`: of the i-th variable after the node's own, the child for the value that is not the commonest.
  struct Node {
    std::uint32_t count;
    Variables common;  // the commonest value of each variable
    Node** rare() noexcept { return reinterpret_cast<Node**>(this + 1); }
    Node* const* rare() const noexcept { return reinterpret_cast<Node* const*>(this + 1); }
  };

  // The node of records [begin, end) of order_; `next` is the first variable that it has children for.
  Node* build(const std::vector<Variables>& records, std::size_t begin, std::size_t end, unsigned next);
  void destroy(Node* node, unsigned next) noexcept;
  std::uint32_t count(const Node* node, unsigned next, const Assignment& asked) const noexcept;
  float sum(std::span<const unsigned> parents, Assignment& asked, Assignment& given) const noexcept;

  const unsigned variables_;
  const std::size_t record_count_;
  std::uint64_t blocks_ = 0;
  std::vector<std::uint32_t> order_;
  Node* root_;
};

}  // namespace loam::workloads::bayes
