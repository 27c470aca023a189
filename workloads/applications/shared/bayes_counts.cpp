#include "workloads/applications/shared/bayes_counts.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <new>
#include <numeric>

namespace loam::workloads::bayes {

Counts::Counts(const std::vector<Variables>& records, unsigned variables)
    : variables_(variables), record_count_(records.size()), order_(records.size()) {
  std::iota(order_.begin(), order_.end(), 0u);
  root_ = build(records, 0, records.size(), 0);
  order_ = {};
}

Counts::~Counts() { destroy(root_, 0); }

Counts::Node* Counts::build(const std::vector<Variables>& records, std::size_t begin, std::size_t end, unsigned next) {
  const std::size_t later = variables_ - next;
  void* const block = std::malloc(sizeof(Node) + later * sizeof(Node*));
  LOAM_CHECK(block != nullptr, "bayes: no memory for the counts; take fewer records or variables");
  ++blocks_;
  Node* const node = ::new (block) Node{static_cast<std::uint32_t>(end - begin), 0};
  const auto first = order_.begin();
  for (unsigned variable = next; variable < variables_; ++variable) {
    const auto middle =
        std::partition(first + static_cast<std::ptrdiff_t>(begin), first + static_cast<std::ptrdiff_t>(end),
                       [&](std::uint32_t record) { return (records[record] >> variable & 1) == 0; });
    const auto zeroes_end = static_cast<std::size_t>(middle - first);
    const bool zero_is_common = zeroes_end - begin >= end - zeroes_end;
    if (!zero_is_common) node->common |= Variables{1} << variable;
    const std::size_t rare_begin = zero_is_common ? zeroes_end : begin, rare_end = zero_is_common ? end : zeroes_end;
    node->rare()[variable - next] =
        rare_begin == rare_end ? nullptr : build(records, rare_begin, rare_end, variable + 1);
  }
  return node;
}

void Counts::destroy(Node* node, unsigned next) noexcept {
  if (node == nullptr) return;
  for (unsigned variable = next; variable < variables_; ++variable)
    destroy(node->rare()[variable - next], variable + 1);
  std::free(node);
}

std::uint32_t Counts::count(const Node* node, unsigned next, const Assignment& asked) const noexcept {
  if (node == nullptr) return 0;
  const Variables left = next < kVariablesMax ? asked.known >> next : 0;
  if (left == 0) return node->count;
  const unsigned variable = next + static_cast<unsigned>(std::countr_zero(left));
  const Node* const rare = node->rare()[variable - next];
  const bool common = ((asked.values ^ node->common) >> variable & 1) == 0;
  if (!common) return count(rare, variable + 1, asked);
  Assignment others = asked;
  others.known &= ~(Variables{1} << variable);
  return count(node, next, others) - count(rare, variable + 1, asked);
}

float Counts::log_likelihood(unsigned variable, std::span<const unsigned> parents) const noexcept {
  float likelihood = 0;
  for (const unsigned value : {0u, 1u}) {
    Assignment asked{Variables{1} << variable, Variables{value} << variable}, given;
    likelihood += sum(parents, asked, given);
  }
  return likelihood;
}

// In floats, and in this order: the scores are compared, so that their rounding decides what is learned.
float Counts::sum(std::span<const unsigned> parents, Assignment& asked, Assignment& given) const noexcept {
  if (parents.empty()) {
    const std::uint32_t both = count(asked);
    if (both == 0) return 0;
    const double share = static_cast<double>(both) / static_cast<double>(record_count_);
    return static_cast<float>(share * std::log(static_cast<double>(both) / static_cast<double>(count(given))));
  }
  const Variables bit = Variables{1} << parents.front();
  float likelihood = 0;
  for (const Variables value : {Variables{0}, bit})
    for (Assignment* const assignment : {&asked, &given}) {
      assignment->known |= bit;
      assignment->values = (assignment->values & ~bit) | value;
      if (assignment == &given) likelihood += sum(parents.subspan(1), asked, given);
    }
  for (Assignment* const assignment : {&asked, &given}) {
    assignment->known &= ~bit;
    assignment->values &= ~bit;
  }
  return likelihood;
}

}  // namespace loam::workloads::bayes
