// stocks: the functions of platform/stock.hpp, for transactions in a process with this malloc.
#include "runtime/platform/stock.hpp"

#include "runtime/malloc/entry.hpp"

using loam::malloc::Lending;

#pragma GCC visibility push(default)
extern "C" {

// Also returns 0 if another library's malloc is in front of this one: that library would not see these allocations.
int loam_malloc_lend(loam::platform::Stocks** user) {
  if (user == nullptr) {
    Lending::end();
    return 0;
  }
  return loam::malloc::serves_process() && Lending::lend(user) ? 1 : 0;
}

int loam_malloc_restock(loam::platform::Stock* stock) { return Lending::restock(*stock) ? 1 : 0; }

int loam_malloc_refill(loam::platform::Stock* stock, int was_short) {
  return Lending::refill(*stock, was_short != 0) ? 1 : 0;
}

[[LOAM_FREE_ENTRY]] void loam_malloc_give(void* block) { Lending::give(block); }

}  // extern "C"
#pragma GCC visibility pop
