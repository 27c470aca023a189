// elided_memory: malloc and free of elided sections (elision.hpp), with blocks that malloc lends where it does (lent.hpp).
//   allocate  takes from a stock: an abort leaves no trace. Under the lock malloc serves where the stock is empty.
//   release   is done after the section: its free writes into no list that others look at, and takes no lock. There is nobody
//             to wait for: an attempt that may still read the block has read what the section has written, and aborts.
//   Where malloc lends nothing both are the process's malloc and free, within the section.
//   Cost      an entry of a log for each block that is freed, and a look at one word before each section.
//   When not  sections that free more than kFreedMax blocks: the rest is freed within. A section within another one would take
//             its log: they need two of these.
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

// Of a thread: make it thread_local. end_thread() before the thread ends.
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

  // Blocks that the thread's sections have made, less those that they freed.
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
    // An attempt that meets a page for the first time aborts.
    for (void*& block : freed_) const_cast<void* volatile&>(block) = nullptr;
  }

  platform::Stocks* stocks_ = &platform::no_stocks;
  std::uint64_t used_ = 0;  // stocks that sections have taken from since these were last filled
  bool attached_ = false;
  std::int64_t live_ = 0;
  std::array<void*, kFreedMax> freed_{};  // by the running section
};

// What a section allocates and frees by. Lies on the stack of who runs it.
class Section {
 public:
  explicit Section(ElidedMemory& memory) noexcept
      : memory_(&memory), stocks_(memory.lends() ? &memory.stocks() : nullptr) {}

  // The section begins, or begins once more.
  void begin(bool in_hardware) noexcept { in_hardware_ = in_hardware; }

  // nullptr: malloc has none
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

  // The stock is empty.
  void* allocate_without(unsigned number, std::size_t bytes) const noexcept {
    if (in_hardware_) abort_for_stock(number);
    return std::malloc(bytes);
  }

  ElidedMemory* memory_;
  platform::Stocks* const stocks_;  // nullptr: malloc lends nothing. Here, so that an attempt touches no line to ask
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
