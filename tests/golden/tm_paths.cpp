// The steps of the algorithms' transactions, to be counted by test_instruction_counts.py (steps.hpp says how).
//   loam-golden-tm-paths             the algorithms' names
//   loam-golden-tm-paths NAME        the cases of one: a process runs one algorithm
//   loam-golden-tm-paths NAME time   their nanoseconds
#include "runtime/tm/algorithms.hpp"
#include "runtime/tm/tm.hpp"
#include "tests/golden/steps.hpp"

#include <string_view>
#include <type_traits>

namespace {

using namespace loam;
using namespace loam::golden;

// Pointer chasing where reads are counted: the address of a read is the value of the one before, as in a list.
template <class Algorithm>
void main_steps() {
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
  compare<kFew, kMore>("further write of another stripe, with its commit", [](auto n) {
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

// What only the default algorithm is watched for.
void further_steps() {
  using Txs = tm::Driver<tm::EtlWb<false>>;
  // The first read of a pair logs the stripe, the second finds it logged: only the second is counted.
  compare<kFew, kMore>("read, logged, same stripe as the one before", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      Node* node = opaque(&nodes[0]);
      straight<kMore>([&](auto i) LOAM_STEP {
        if constexpr (i < n) opaque(tx.read(node->key));
        node = tx.read(node->next);
      });
      opaque(node);
    });
  });
  compare<1, 2>("further write of the same stripe, with its commit", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      Node* const node = opaque(&nodes[0]);
      straight<n>([&](auto i) LOAM_STEP { tx.write(node->spare[2 + i], std::uint64_t{i}); });
    });
  });
  compare<kFew, kMore>("write after write", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      Node* const node = opaque(&nodes[0]);
      tx.write(node->key, std::uint64_t{1});
      straight<n>([&](auto i) LOAM_STEP { tx.write(node->key, std::uint64_t{i}); });
    });
  });
  compare<0, 8>("allocation and free of 16 bytes", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      struct Pair {
        std::uint64_t a, b;
      };
      straight<n>([&](auto i) LOAM_STEP { tx.destroy(tx.template create<Pair>(i, i)); });
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
  // The counts are of the algorithm alone; what waiting for older attempts costs is another matter.
  tm::configure({.privatization = tm::Privatization::none});
  link_nodes();
  timed = count > 2 && std::string_view(arguments[2]) == "time";
  if (!tm::Algorithms::with<false>(arguments[1], []<class Algorithm>() {
        main_steps<Algorithm>();
        if constexpr (std::is_same_v<Algorithm, tm::EtlWb<false>>) further_steps();
      })) {
    std::fprintf(stderr, "no algorithm %s\n", arguments[1]);
    return 2;
  }
  std::printf("compiler: GCC %s\n", __VERSION__);
}
