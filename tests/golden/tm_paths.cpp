// Every step of etl-wb's transactions, to be counted by test_instruction_counts.py (steps.hpp says how).
#include "runtime/tm/tm.hpp"
#include "tests/golden/steps.hpp"

namespace {

using namespace loam;
using Txs = tm::Driver<tm::DefaultAlgorithm>;

using namespace loam::golden;

void transactions() {
  // Straight-line copies of a whole transaction: what a loop costs falls out.
  compare<1, 2>("empty read-only transaction",
                [](auto n) { straight<n>([](auto) LOAM_STEP { Txs::read_only([](auto&) {}); }); });
  compare<1, 2>("empty update transaction",
                [](auto n) { straight<n>([](auto) LOAM_STEP { Txs::update([](auto&) {}); }); });
}

void reads() {
  // Pointer chasing: the address of a read is the value of the one before, as in a list.
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
}

void writes() {
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
  compare<1, 2>("further write of the same stripe, with its commit", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      Node* const node = opaque(&nodes[0]);
      straight<n>([&](auto i) LOAM_STEP { tx.write(node->spare[2 + i], std::uint64_t{i}); });
    });
  });
  compare<kFew, kMore>("read after write", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      Node* const node = opaque(&nodes[0]);
      tx.write(node->key, std::uint64_t{1});
      straight<n>([&](auto) LOAM_STEP { opaque(tx.read(node->key)); });
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

int main() {
  // The counts are of the algorithm alone; what waiting for older attempts costs is another matter.
  tm::configure({.privatization = tm::Privatization::none});
  link_nodes();
  transactions();
  reads();
  writes();
  std::printf("compiler: GCC %s\n", __VERSION__);
}
