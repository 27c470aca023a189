// elided_memory: malloc and free of elided sections (elision.hpp). Blocks come from the stocks that malloc lends
// (lent.hpp).
//   allocate  takes a block from a stock, and the hardware undoes this at an abort. If the stock is empty and the
//             section runs under the lock, the block comes from malloc.
//   release   frees the block after the section. So the section takes no lock for it, and writes to no list that other
//             threads read. It need not wait for quiescence: an attempt that may still read the block has also read
//             what the section has written, and aborts.
//   If malloc lends nothing, both call the process's malloc and free within the section.
//   Cost      a log entry for each freed block, and a load and a comparison before each section.
//   When not  sections that free more than kFreedMax blocks: they free the others within the section. Nested sections
//             need an object of this class each, because they would overwrite each other's log.
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/stock.hpp"
#include "runtime/tm/hardware/lent.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace loam::tm::hardware {

class Section;

// Each thread needs its own: make it thread_local. Call end_thread() before the thread ends.
class alignas(platform::kApartBytes) ElidedMemory {
 public:
  static constexpr std::uint32_t kFreedMax = 512;

  // Before a section.
  [[gnu::always_inline]] void begin() noexcept {
    if (!attached_) [[unlikely]]
      attach();
    if (used_ != 0) [[unlikely]]
      refill(*stocks_, std::exchange(used_, 0));
  }
  // After it.
  inline void end(const Section& section) noexcept;

  // The number of blocks that the thread's sections have allocated, less those that they have freed.
  std::int64_t live() const noexcept { return live_; }
  std::int64_t take_live() noexcept { return std::exchange(live_, 0); }

  void end_thread() noexcept {
    if (stocks_ != &platform::no_stocks) loam_malloc_lend(nullptr);
    attached_ = false;
  }

  platform::Stocks& stocks() noexcept { return *stocks_; }
  bool lends() const noexcept { return stocks_ != &platform::no_stocks; }

 private:
  friend class Section;

  [[gnu::noinline]] void attach() noexcept {
    attached_ = true;
    if (loam_malloc_lend == nullptr || loam_malloc_lend(&stocks_) == 0) return;
    abort_for_stock(platform::kStocks);
    // Touches the log's pages, because an attempt that touches a page for the first time aborts.
    for (void*& block : freed_) const_cast<void* volatile&>(block) = nullptr;
  }

  platform::Stocks* stocks_ = &platform::no_stocks;
  std::uint64_t used_ = 0;  // a bit for each stock from which sections have taken blocks since it was last filled
  bool attached_ = false;
  std::int64_t live_ = 0;
  std::array<void*, kFreedMax> freed_{};  // the log: blocks that the running section has freed
};

// By this a section allocates and frees. It lies on the stack of the thread, so an abort resets it.
class Section {
 public:
  explicit Section(ElidedMemory& memory) noexcept
      : memory_(&memory), stocks_(memory.lends() ? &memory.stocks() : nullptr) {}

  // Call at each start of the section.
  void begin(bool in_hardware) noexcept { in_hardware_ = in_hardware; }

  // nullptr: malloc has no memory
  [[gnu::always_inline]] void* allocate(std::size_t bytes) noexcept {
    ++live_;
    if (stocks_ == nullptr || bytes > platform::kStockBytesMax) return std::malloc(bytes);
    const unsigned number = platform::stock_of(bytes);
    void* const block = take(*stocks_, number, taken_);
    if (block == nullptr) [[unlikely]]
      return allocate_without(number, bytes);
    return block;
  }

  [[gnu::always_inline]] void release(void* block) noexcept {
    --live_;
    if (stocks_ == nullptr || freed_ == ElidedMemory::kFreedMax) return std::free(block);
    memory_->freed_[freed_++] = block;
  }

 private:
  friend class ElidedMemory;

  // For an empty stock.
  void* allocate_without(unsigned number, std::size_t bytes) const noexcept {
    if (in_hardware_) abort_for_stock(number);
    return std::malloc(bytes);
  }

  ElidedMemory* memory_;
  platform::Stocks* const stocks_;  // nullptr: malloc lends nothing. A copy, so that an attempt need not load memory_'s
  bool in_hardware_ = false;
  std::uint32_t freed_ = 0;
  std::int64_t live_ = 0;
  Taken taken_{};
};

inline void ElidedMemory::end(const Section& section) noexcept {
  for (std::uint32_t i = 0; i < section.freed_; ++i) loam_malloc_give(freed_[i]);
  used_ |= section.taken_.stocks;
  live_ += section.live_;
}

}  // namespace loam::tm::hardware
