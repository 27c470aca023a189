// The main steps of every algorithm's transactions, to be counted by test_instruction_counts.py (steps.hpp says how).
//   loam-golden-algorithm-paths             the algorithms' names
//   loam-golden-algorithm-paths NAME        the cases of one: a process runs one algorithm
//   loam-golden-algorithm-paths NAME time   their nanoseconds
#include "runtime/tm/algorithms.hpp"
#include "tests/golden/steps.hpp"

#include <string_view>

namespace {

using namespace loam;
using namespace loam::golden;

template <class Algorithm>
void steps() {
  using Txs = tm::Driver<Algorithm>;
  compare<1, 2>("empty read-only transaction",
                [](auto n) { straight<n>([](auto) LOAM_STEP { Txs::read_only([](auto&) {}); }); });
  compare<1, 2>("empty update transaction",
                [](auto n) { straight<n>([](auto) LOAM_STEP { Txs::update([](auto&) {}); }); });
  compare<kFew, kMore>("read, read-only", [](auto n) {
    Txs::read_only([&](auto& tx) LOAM_STEP {
      Node* node = opaque(&nodes[0]);
      straight<n>([&](auto) LOAM_STEP { node = tx.read(node->next); });
      opaque(node);
    });
  });
  compare<kFew, kMore>("read, logged", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      Node* node = opaque(&nodes[0]);
      straight<n>([&](auto) LOAM_STEP { node = tx.read(node->next); });
      opaque(node);
    });
  });
  compare<0, 1>("first write, with its commit", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      Node* const node = opaque(&nodes[0]);
      if constexpr (n > 0) tx.write(node->key, std::uint64_t{1});
    });
  });
  compare<kFew, kMore>("further write, with its commit", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      Node* const node = opaque(&nodes[0]);
      straight<n>([&](auto i) LOAM_STEP { tx.write(node[i].key, std::uint64_t{i}); });
    });
  });
  compare<kFew, kMore>("read after write", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      Node* const node = opaque(&nodes[0]);
      tx.write(node->key, std::uint64_t{1});
      straight<n>([&](auto) LOAM_STEP { opaque(tx.read(node->key)); });
    });
  });
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 1) {
    for (const std::string_view name : tm::Algorithms::kNames)
      std::printf("%.*s\n", static_cast<int>(name.size()), name.data());
    return 0;
  }
  tm::configure({.privatization = tm::Privatization::none});
  link_nodes();
  timed = count > 2 && std::string_view(arguments[2]) == "time";
  if (!tm::Algorithms::with<false>(arguments[1], []<class Algorithm>() { steps<Algorithm>(); })) {
    std::fprintf(stderr, "no algorithm %s\n", arguments[1]);
    return 2;
  }
  std::printf("compiler: GCC %s\n", __VERSION__);
}
