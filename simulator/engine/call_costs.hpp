// What a call of a native allocator costs: its code has no hooks, so the cost comes from a table (LOAM_SIM_ALLOCATION).
//
//   fixed     one number for each malloc, one for each free
//   counted   by size of block, from what the calls of this allocator execute (lab: `./loam allocators costs`). Each thread
//             has a stock of freed blocks of a size: a malloc from the stock is a hit, one of an empty stock a miss; a free
//             into a full stock is a miss too. A block that another thread took is a remote free, and enters no stock.
//             Real allocators take and give back several blocks at once; here each miss costs their mean.
#pragma once

#include "simulator/engine/thread.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace loam::simulator {

class CallCosts {
 public:
  // text: "MALLOC,FREE"; or "NAME;BYTES=STOCK,MALLOC,FREE,MALLOC MISS,FREE MISS,REMOTE FREE;...", the sizes rising.
  // Ends the program with a message where it is neither.
  void read(const char* text);

  // "fixed", or "counted: NAME".
  const char* kind() const noexcept { return kind_; }

  // Cycles of a malloc by that thread.
  std::uint64_t take(unsigned thread, std::size_t bytes) noexcept;
  // It gave this block.
  void taken(unsigned thread, const void* block, std::size_t bytes) noexcept;
  // Cycles of a free by that thread.
  std::uint64_t give(unsigned thread, const void* block) noexcept;

 private:
  static constexpr unsigned kSizesMax = 16, kKindBytes = 96;

  struct Size {
    std::uint64_t bytes = 0, stock = 0, malloc = 0, free = 0, malloc_miss = 0, free_miss = 0, remote = 0;
  };
  // The thread that took a block, and its place among the sizes. An entry stays when the block is freed: the next block at
  // this address replaces it.
  struct Owner {
    const void* block;
    std::uint16_t thread;
    std::uint16_t size;
  };

  unsigned size_of(std::size_t bytes) const noexcept;
  std::uint32_t& stock(unsigned thread, unsigned size) const noexcept { return stocks_[thread * kSizesMax + size]; }
  Owner& place(const void* block) const noexcept;
  void grow() noexcept;

  char kind_[kKindBytes] = "fixed";
  std::uint64_t malloc_ = 60, free_ = 40;
  unsigned sizes_ = 0;  // 0: fixed
  Size size_[kSizesMax];
  std::uint32_t* stocks_ = nullptr;  // by thread and size
  Owner* owners_ = nullptr;          // a hash table
  std::size_t owners_room_ = 0, owners_used_ = 0;
};

extern CallCosts call_costs;

}  // namespace loam::simulator
