// Stocks: free blocks of a heap that are reserved for its thread's transactions (platform/stock.hpp has the interface).
//   A stock is an array of pointers, for each class up to 1 KiB. Blocks come from the heap's lists, a lot at a time,
//   and from frees after commits, one at a time. Only transactions use them. malloc gets them when memory is short, and
//   other threads when the thread ends.
//
//   The end of the array is fixed. A lot is added at the end: the pointers before it move down, those of the running
//   attempt's blocks included. So after an abort these blocks lie in front of the remaining ones.
//
//   Cost: a block that comes back is two stores and the comparison with `first`; a lot moves as many pointers as the
//   running attempt has taken, and the array doubles where that is more than it holds.
//
//   When not: an attempt that takes a million blocks and aborts leaves them in the stock until malloc_trim().
//
//   K1 as in platform/stock.hpp; [next, end) are blocks of the class that were carved, begin <= kept.
#pragma once

#include "runtime/base/check.hpp"
#include "runtime/heap/free_block.hpp"
#include "runtime/heap/page_map.hpp"
#include "runtime/heap/size_classes.hpp"
#include "runtime/platform/stock.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

namespace loam::heap {

template <SizeClasses Classes>
class Stocks {
 public:
  static constexpr unsigned kStocked = Classes::class_of(platform::kStockBytesMax) + 1;
  // Of the word of a unit with blocks of the first class without a stock, xor the owner.
  static constexpr PageMap::Word kOffsetsEnd = kStocked * kWordStep;

  // Blocks that frees fill a class up to, and as many as come at once.
  static constexpr std::uint32_t most_of(unsigned c) noexcept {
    return static_cast<std::uint32_t>(std::clamp<std::size_t>(kBytesMax / Classes::bytes_of(c), kLeast, kMost));
  }
  static constexpr std::uint32_t kLotMax = 64;
  static constexpr std::uint32_t lot_of(unsigned c) noexcept { return most_of(c) / 2; }

  // owner: the heap's address. The page map is open.
  explicit Stocks(Key owner) noexcept : table_{{}, {}, PageMap::begin(), PageMap::limit(), owner} {
    LOAM_ASSERT(PageMap::is_open(), "a stock of a heap that has no memory yet");
    for (unsigned c = 0; c < kStocked; ++c) {
      void** const begin = &places_[kBegins[c]];
      begins_[c] = begin;
      ends_[c] = begin + most_of(c);
      *ends_[c] = nullptr;
      stocks_[c] = {ends_[c], ends_[c], platform::kNoAttempt, begin};
    }
    for (std::size_t slot = 0; slot < platform::kStockSizes; ++slot) {
      const unsigned c = Classes::small_slots()[slot];
      table_.of[slot] = &stocks_[c];
      table_.word_of[slot] = owner ^ PageMap::Word{c} * kWordStep;
    }
  }
  Stocks(const Stocks&) = delete;
  Stocks& operator=(const Stocks&) = delete;

  void lend_to(const platform::Stocks** user) noexcept {
    end_loan();
    // Another user's attempts may have had the same numbers.
    for (platform::Stock& stock : stocks_) stock.attempt = platform::kNoAttempt;
    user_ = user;
    before_ = std::exchange(*user, &table_);
  }
  void end_loan() noexcept {
    if (user_ != nullptr) *user_ = before_;
    user_ = nullptr;
  }

  unsigned class_of(const platform::Stock& stock) const noexcept {
    return static_cast<unsigned>(&stock - stocks_.data());
  }

  // Adds a free block. offset: the difference of its unit's word and its owner's address. returns false if there is no
  // room
  [[gnu::always_inline]] bool put(PageMap::Word offset, FreeBlock* block) noexcept {
    return platform::put(stocks_[offset / kWordStep], block, table_.mark);
  }

  // Adds blocks behind all others; memory(bytes): for a longer array. returns false where there is none
  template <class Memory>
  bool add(unsigned c, std::span<void* const> blocks, Memory memory) noexcept {
    platform::Stock& stock = stocks_[c];
    LOAM_ASSERT(stock.kept <= stock.next, "K1: a stock of class {} is {} blocks ahead of its attempt", c,
                stock.kept - stock.next);
    if (static_cast<std::size_t>(stock.kept - begins_[c]) < blocks.size() && !lengthen(c, memory)) return false;
    void** const from = stock.kept;
    stock.kept -= blocks.size();
    stock.next -= blocks.size();
    std::memmove(stock.kept, from, static_cast<std::size_t>(ends_[c] - from) * sizeof(void*));
    std::copy(blocks.begin(), blocks.end(), ends_[c] - blocks.size());
    return true;
  }

  // Empties all stocks: calls take(class, block). Blocks that the running attempt has taken stay with the attempt.
  template <class Take>
  void empty(Take take) noexcept {
    for (unsigned c = 0; c < kStocked; ++c) {
      platform::Stock& stock = stocks_[c];
      for (void** at = stock.next; at != ends_[c]; ++at) take(c, static_cast<FreeBlock*>(*at));
      const std::ptrdiff_t taken = std::max<std::ptrdiff_t>(stock.next - stock.kept, 0);
      std::memmove(ends_[c] - taken, stock.next - taken, static_cast<std::size_t>(taken) * sizeof(void*));
      stock.kept = ends_[c] - taken;
      stock.next = ends_[c];
    }
  }

  std::span<void* const> blocks(unsigned c) const noexcept {
    return c < kStocked ? std::span<void* const>(stocks_[c].next, ends_[c]) : std::span<void* const>();
  }
  bool has(unsigned c, const void* block) const noexcept {
    return std::ranges::find(blocks(c), block) != blocks(c).end();
  }

  // nullptr, or the invariant that does not hold. is_block(class, block): whether it is one that was carved
  template <class IsBlock>
  const char* verify(IsBlock is_block) const noexcept {
    for (unsigned c = 0; c < kStocked; ++c) {
      if (stocks_[c].next < begins_[c] || stocks_[c].next > ends_[c] || *ends_[c] != nullptr)
        return "K1: a stock ends with a null";
      for (void* const block : blocks(c))
        if (block == nullptr || !is_block(c, static_cast<const FreeBlock*>(block)))
          return "K1: a stock holds blocks of its class";
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t kBytesMax = 16u << 10;
  static constexpr std::uint32_t kLeast = 16, kMost = 2 * kLotMax;
  static constexpr std::size_t kLengthMax = std::size_t{1} << 20;  // of an array

  static_assert(Classes::small_slots().size() == platform::kStockSizes && Classes::kSlot == platform::kStockStep);
  static_assert(kUnitShift == platform::kStockUnitShift);

  // Where the classes' arrays begin, each with a place for its null.
  static constexpr auto kBegins = [] {
    std::array<std::uint32_t, kStocked + 1> begins{};
    for (unsigned c = 0; c < kStocked; ++c) begins[c + 1] = begins[c] + most_of(c) + 1;
    return begins;
  }();

  // An array twice as long. The old one is lost: all of them together are shorter than the new one.
  template <class Memory>
  bool lengthen(unsigned c, Memory memory) noexcept {
    platform::Stock& stock = stocks_[c];
    const std::size_t length = 2 * static_cast<std::size_t>(ends_[c] - begins_[c]);
    if (length > kLengthMax) return false;
    auto** const begin = reinterpret_cast<void**>(memory((length + 1) * sizeof(void*)));  // zeroed: the null is there
    if (begin == nullptr) return false;
    void** const end = begin + length;
    const std::ptrdiff_t kept = ends_[c] - stock.kept, left = ends_[c] - stock.next;
    std::copy(stock.kept, ends_[c], end - kept);
    stock.kept = end - kept;
    stock.next = end - left;
    stock.first = end - most_of(c);
    begins_[c] = begin;
    ends_[c] = end;
    return true;
  }

  std::array<platform::Stock, kStocked> stocks_;
  platform::Stocks table_;
  const platform::Stocks** user_ = nullptr;
  const platform::Stocks* before_ = nullptr;  // what *user_ was
  std::array<void**, kStocked> begins_, ends_;
  std::array<void*, kBegins[kStocked]> places_;  // the first arrays; untouched pages stay so
};

}  // namespace loam::heap
