// Transactions of a process that libloam-malloc.so serves: their blocks are lent by it (platform/stock.hpp).
#include "include/loam/malloc.h"
#include "runtime/platform/stock.hpp"
#include "runtime/tm/algorithms/etl_wb.hpp"
#include "runtime/tm/tm.hpp"
#include "tests/unit/malloc/blocks.hpp"

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace loam::tests {
namespace {

using Driver = tm::Driver<tm::EtlWb<false>>;

struct Node {
  std::uint64_t key;
  Node* next;
};
struct Cancel {};

std::string verified() {
  const char* const broken = loam_malloc_verify();
  return broken == nullptr ? "" : broken;
}

// What the attempt that is taken back allocates first.
void* first_of_a_cancelled_attempt(std::size_t blocks) {
  void* first = nullptr;
  try {
    Driver::update([&](auto& tx) {
      for (std::size_t i = 0; i < blocks; ++i) {
        void* const block = tx.allocate(sizeof(Node));
        fill(block, sizeof(Node), 3);
        if (i == 0) first = block;
      }
      throw Cancel{};
    });
  } catch (const Cancel&) {
  }
  return first;
}

TEST(Transactions, TheLibraryLendsAndAnAbortTakesBack) {
  void* const first = first_of_a_cancelled_attempt(1);
  for (const std::size_t blocks : {1, 10, 1000}) EXPECT_EQ(first_of_a_cancelled_attempt(blocks), first);
  EXPECT_NE(tm::Descriptor::current_or_detached().stocks->units, 0u);
  EXPECT_EQ(verified(), "");
}

TEST(Transactions, PlainCallsTakeTheirBlocks) {
  std::vector<Node*> nodes;
  for (std::uint64_t i = 0; i < 1000; ++i)
    nodes.push_back(Driver::update([i](auto& tx) { return tx.template create<Node>(i, nullptr); }));
  EXPECT_EQ(std::set<Node*>(nodes.begin(), nodes.end()).size(), nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i]->key, i);
    EXPECT_GE(malloc_usable_size(nodes[i]), sizeof(Node));
    if (i % 3 == 0) std::free(nodes[i]);
    if (i % 3 == 1) nodes[i] = static_cast<Node*>(std::realloc(nodes[i], 100000));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i % 3 == 0) continue;
    EXPECT_EQ(nodes[i]->key, i);
    Driver::update([&](auto& tx) { tx.release(nodes[i]); });
  }
  EXPECT_EQ(tm::quiesce(), 0u);
  EXPECT_EQ(verified(), "");
}

TEST(Transactions, BlocksOfMallocAreReleasedByTransactions) {
  for (int i = 0; i < 1000; ++i) {
    void* const block = std::malloc(opaque<std::size_t>(16 + static_cast<std::size_t>(i)));
    Driver::update([&](auto& tx) { tx.release(block); });
  }
  EXPECT_EQ(tm::quiesce(), 0u);
  EXPECT_EQ(verified(), "");
}

// A thread's key destructors run in any order: the heap's may come first.
TEST(Transactions, ThreadsEndWithBlocksThatWait) {
  for (int round = 0; round < 50; ++round) {
    Node* made = nullptr;
    std::thread([&] {
      for (int i = 0; i < 100; ++i) {
        Driver::update([&](auto& tx) { tx.destroy(tx.template create<Node>(1u, nullptr)); });
        made = Driver::update([&](auto& tx) { return tx.template create<Node>(2u, made); });
      }
    }).join();
    std::thread([&] {
      while (made != nullptr)
        Driver::update([&](auto& tx) {
          Node* const next = tx.read(made->next);
          tx.destroy(made);
          made = next;
        });
    }).join();
  }
  tm::quiesce();
  EXPECT_EQ(verified(), "");
}

TEST(Transactions, TheChildOfAForkGoesOn) {
  first_of_a_cancelled_attempt(100);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    void* const first = first_of_a_cancelled_attempt(100);
    const bool right = first == first_of_a_cancelled_attempt(200) && verified().empty();
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Transactions, TrimTakesWhatLiesReady) {
  first_of_a_cancelled_attempt(20000);
  EXPECT_EQ(malloc_trim(0), 1);
  EXPECT_EQ(*tm::Descriptor::current_or_detached().stocks->all[0].next, nullptr);
  EXPECT_NE(first_of_a_cancelled_attempt(10), nullptr);
  EXPECT_EQ(verified(), "");
}

}  // namespace
}  // namespace loam::tests
