// What creating, destroying and undoing cost in transactions (etl-wb), to be counted by test_stock_counts.py of whatever
// allocator serves this process. Dumps are named "CASE;few or more;times", as steps.hpp has it.
//   pairs, in one transaction    the step is a block created and destroyed in one transaction
//   pairs, in two transactions   one creates the block, another destroys it; both count, reclamation included
//   empty pair                   two transactions that do nothing: what the ones above cost themselves
//   undo of N                    what gives N blocks of an attempt back
#include "runtime/tm/algorithms/etl_wb.hpp"
#include "runtime/tm/tm.hpp"
#include "tests/golden/steps.hpp"

namespace {

using namespace loam;
using namespace loam::golden;
using Txs = tm::Driver<tm::EtlWb<false>>;

struct Block {
  std::uint64_t words[6];
};

// Apart, so that what is counted beside the undo is the same however many blocks there are.
[[gnu::noinline]] void undo_counted(tm::Descriptor& d, const char* dump) {
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
  tm::memory::undo(d);
  CALLGRIND_DUMP_STATS_AT(dump);
  CALLGRIND_STOP_INSTRUMENTATION;
}

void count_undo(unsigned blocks) {
  char dump[64];
  for (int turn = 0; turn < 3; ++turn) {  // the last one counts
    std::snprintf(dump, sizeof dump, turn < 2 ? "warm %u;more;1" : "undo of %u;more;1", blocks);
    Txs::update([&](auto& tx) {
      for (unsigned i = 0; i < blocks; ++i) opaque(tx.template create<Block>(Block{{i}}));
      undo_counted(tx.descriptor(), dump);
    });
  }
}

}  // namespace

int main() {
  tm::configure({.privatization = tm::Privatization::none});
  compare<0, 8>("pairs, in one transaction", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      straight<n>([&](auto i) LOAM_STEP { tx.destroy(opaque(tx.template create<Block>(Block{{i}}))); });
    });
  });
  compare<1, 2>("pairs, in two transactions", [](auto n) {
    straight<n>([](auto i) LOAM_STEP {
      Block* block = nullptr;
      Txs::update([&](auto& tx) LOAM_STEP { block = tx.template create<Block>(Block{{i}}); });
      Txs::update([&](auto& tx) LOAM_STEP { tx.destroy(opaque(block)); });
    });
  });
  compare<1, 2>("empty pair", [](auto n) {
    straight<n>([](auto) LOAM_STEP {
      Txs::update([](auto&) {});
      Txs::update([](auto&) {});
    });
  });
  count_undo(1);
  count_undo(10);
  count_undo(1000);
  std::printf("compiler: GCC %s\n", __VERSION__);
}
