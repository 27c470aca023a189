// Stocks: free blocks of a heap that are reserved for its thread's transactions (platform/stock.hpp has the interface).
//   A stock is an array of pointers, for each class up to 32 KiB. Blocks come from the heap's lists, a lot at a time,
//   and from frees after commits, one at a time. Only transactions use them. malloc gets them when memory is short, and
//   other threads when the thread ends.
//
//   The end of the array is fixed. A lot is added at the end: the pointers before it move down, those of the running
//   attempt's blocks included. So after an abort these blocks lie in front of the remaining ones.
//
//   A hardware attempt cannot add blocks to a stock. So a stock has a low-water mark, a number of blocks, and is filled
//   up to it between attempts. The mark is 0 until a hardware attempt has found the stock empty. It doubles each time
//   that an attempt empties a stock that was full up to the mark. All pages of blocks that are added to a stock with a
//   mark are touched first.
//
//   Cost: a freed block is two stores and the comparison with `first`. A lot moves as many pointers as the running
//   attempt has taken; if this is more than the array holds, the array doubles.
//
//   When not: after an aborted attempt of a million blocks, the stock holds a million blocks until malloc_trim(). After
//   a large hardware transaction, it holds as many blocks as its mark says.
//
//   K1 and K5 as in platform/stock.hpp; [next, end) are blocks of the class that were carved, begin <= kept.
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
  static constexpr unsigned kStocked = platform::kStocks;
  // The lowest offset without a stock. An offset is the word of a block's unit, xor the owner's address.
  static constexpr PageMap::Word kOffsetsEnd = kStocked * kWordStep;

  // Frees put a block onto the stock only while it has fewer blocks than most_of(c). lot_of(c): blocks of one lot.
  static constexpr std::uint32_t most_of(unsigned c) noexcept {
    const std::size_t bytes = Classes::bytes_of(c), least = std::clamp<std::size_t>(kLongBytesMax / bytes, 4, 16);
    return static_cast<std::uint32_t>(std::clamp<std::size_t>(kBytesMax / bytes, least, kMost));
  }
  static constexpr std::uint32_t kLotMax = 64;
  static constexpr std::uint32_t lot_of(unsigned c) noexcept { return most_of(c) / 2; }

  // The highest low-water mark. No processor can track more lines in a transaction, and a block is at least one line.
  static constexpr std::uint32_t ready_max_of(unsigned c) noexcept {
    return static_cast<std::uint32_t>(
        std::clamp<std::size_t>(kReadyBytesMax / Classes::bytes_of(c), kMost, kReadyMost));
  }

  // owner: the heap's address. The page map is open.
  explicit Stocks(Key owner) noexcept : table_{{}, PageMap::begin(), PageMap::limit(), owner} {
    LOAM_ASSERT(PageMap::is_open(), "a stock of a heap that has no memory yet");
    for (unsigned c = 0; c < kStocked; ++c) {
      void** const begin = &places_[kBegins[c]];
      begins_[c] = begin;
      ends_[c] = begin + most_of(c);
      *ends_[c] = nullptr;
      table_.all[c] = {ends_[c], ends_[c], platform::kNoAttempt, begin, ends_[c], owner ^ PageMap::Word{c} * kWordStep};
    }
  }
  Stocks(const Stocks&) = delete;
  Stocks& operator=(const Stocks&) = delete;

  void lend_to(platform::Stocks** user) noexcept {
    end_loan();
    // Another user's attempts may have had the same numbers.
    for (platform::Stock& stock : table_.all) stock.attempt = platform::kNoAttempt;
    user_ = user;
    before_ = std::exchange(*user, &table_);
  }
  void end_loan() noexcept {
    if (user_ != nullptr) *user_ = before_;
    user_ = nullptr;
  }
  void forget_loan() noexcept { user_ = nullptr; }

  unsigned class_of(const platform::Stock& stock) const noexcept {
    return static_cast<unsigned>(&stock - table_.all.data());
  }

  // Adds a free block. offset: the difference of its unit's word and its owner's address. returns false if there is no
  // room
  [[gnu::always_inline]] bool put(PageMap::Word offset, FreeBlock* block) noexcept {
    const auto c = static_cast<unsigned>(offset / kWordStep);
    if (!platform::put(table_.all[c], block, table_.mark)) return false;
    if (has_mark(c)) touch(c, block);
    return true;
  }

  // Adds blocks behind all others. memory(bytes): gets memory for a longer array. returns false where there is none
  template <class Memory>
  bool add(unsigned c, std::span<void* const> blocks, Memory memory) noexcept {
    platform::Stock& stock = table_.all[c];
    LOAM_ASSERT(stock.kept <= stock.next, "K1: a stock of class {} is {} blocks ahead of its attempt", c,
                stock.kept - stock.next);
    if (static_cast<std::size_t>(stock.kept - begins_[c]) < blocks.size() && !lengthen(c, memory)) return false;
    if (has_mark(c))
      for (void* const block : blocks) touch(c, block);
    void** const from = stock.kept;
    stock.kept -= blocks.size();
    stock.next -= blocks.size();
    std::memmove(stock.kept, from, static_cast<std::size_t>(ends_[c] - from) * sizeof(void*));
    std::copy(blocks.begin(), blocks.end(), ends_[c] - blocks.size());
    return true;
  }

  // ---- for hardware attempts, between them ----

  // From here on the blocks that the last attempt took are no longer put back.
  void forget_attempt(unsigned c) noexcept {
    platform::Stock& stock = table_.all[c];
    stock.kept = stock.next;
    stock.attempt = platform::kNoAttempt;
  }

  // The number of blocks by which the stock is below its low-water mark.
  std::size_t missing(unsigned c) const noexcept {
    const platform::Stock& stock = table_.all[c];
    return stock.next > stock.low ? static_cast<std::size_t>(stock.next - stock.low) : 0;
  }

  // Call after an attempt has found the stock empty. Raises the mark if the stock was full up to it when the attempt
  // began. returns false where the mark cannot rise further, or there is no memory
  template <class Memory>
  bool raise(unsigned c, Memory memory) noexcept {
    platform::Stock& stock = table_.all[c];
    if (missing(c) != 0) return true;
    const auto had = static_cast<std::uint32_t>(ends_[c] - stock.low);
    if (had == ready_max_of(c)) return false;
    const std::uint32_t wanted = std::clamp(2 * had, most_of(c), ready_max_of(c));
    while (static_cast<std::size_t>(ends_[c] - begins_[c]) < wanted)
      if (!lengthen(c, memory)) return false;
    stock.low = ends_[c] - wanted;
    stock.first = ends_[c] - wanted;
    for (void* const block : blocks(c)) touch(c, block);
    return true;
  }

  // Empties all stocks, and sets their marks to 0: calls take(class, block). Blocks that the running attempt has taken
  // stay with the attempt.
  template <class Take>
  void empty(Take take) noexcept {
    for (unsigned c = 0; c < kStocked; ++c) {
      platform::Stock& stock = table_.all[c];
      for (void** at = stock.next; at != ends_[c]; ++at) take(c, static_cast<FreeBlock*>(*at));
      const std::ptrdiff_t taken = std::max<std::ptrdiff_t>(stock.next - stock.kept, 0);
      std::memmove(ends_[c] - taken, stock.next - taken, static_cast<std::size_t>(taken) * sizeof(void*));
      stock.kept = ends_[c] - taken;
      stock.next = stock.low = ends_[c];
      stock.first = ends_[c] - most_of(c);
    }
  }

  std::span<void* const> blocks(unsigned c) const noexcept {
    return c < kStocked ? std::span<void* const>(table_.all[c].next, ends_[c]) : std::span<void* const>();
  }
  bool has(unsigned c, const void* block) const noexcept {
    return std::ranges::find(blocks(c), block) != blocks(c).end();
  }

  // nullptr, or the invariant that does not hold. is_block(class, block): whether it is one that was carved
  template <class IsBlock>
  const char* verify(IsBlock is_block) const noexcept {
    for (unsigned c = 0; c < kStocked; ++c) {
      const platform::Stock& stock = table_.all[c];
      if (stock.next < begins_[c] || stock.next > ends_[c] || *ends_[c] != nullptr)
        return "K1: a stock ends with a null";
      if (stock.low < begins_[c] || stock.low > ends_[c] || stock.first < begins_[c] || stock.first > stock.low)
        return "K5: a stock's array is as long as its low-water mark needs";
      for (void* const block : blocks(c))
        if (block == nullptr || !is_block(c, static_cast<const FreeBlock*>(block)))
          return "K1: a stock holds blocks of its class";
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t kBytesMax = 16u << 10, kLongBytesMax = 64u << 10;
  static constexpr std::uint32_t kMost = 2 * kLotMax;
  static constexpr std::size_t kLengthMax = std::size_t{1} << 20;  // of an array
  static constexpr std::size_t kReadyBytesMax = std::size_t{4} << 20;
  static constexpr std::uint32_t kReadyMost = 1024;

  static_assert(kUnitShift == platform::kStockUnitShift);
  static_assert(
      [] {
        for (std::size_t bytes = 0; bytes < platform::kStockBytesMax; bytes += kBlockAlignment)
          if (Classes::class_of(bytes) != platform::stock_of(bytes) ||
              Classes::class_of(bytes + 1) != platform::stock_of(bytes + 1))
            return false;
        return Classes::kMax == platform::kStockBytesMax;
      }(),
      "a size is served by the stock of its class");

  // Where the classes' arrays begin, each with a place for its null.
  static constexpr auto kBegins = [] {
    std::array<std::uint32_t, kStocked + 1> begins{};
    for (unsigned c = 0; c < kStocked; ++c) begins[c + 1] = begins[c] + most_of(c) + 1;
    return begins;
  }();

  bool has_mark(unsigned c) const noexcept { return table_.all[c].low != ends_[c]; }

  // Touches all pages of a free block, so that the system backs them. The first page is backed already: the heap has
  // written the block's first two words.
  static void touch(unsigned c, void* block) noexcept {
    const std::uintptr_t begin = address_of(block), end = begin + Classes::bytes_of(c);
    for (std::uintptr_t page = (begin | (platform::kPageBytes - 1)) + 1; page < end; page += platform::kPageBytes)
      *reinterpret_cast<volatile std::byte*>(page) = std::byte{0};
  }

  // Makes the array twice as long. The old array is lost: all old arrays together are shorter than the new one.
  template <class Memory>
  bool lengthen(unsigned c, Memory memory) noexcept {
    platform::Stock& stock = table_.all[c];
    const std::size_t length = 2 * static_cast<std::size_t>(ends_[c] - begins_[c]);
    if (length > kLengthMax) return false;
    auto** const begin = reinterpret_cast<void**>(memory((length + 1) * sizeof(void*)));  // zeroed: the null is there
    if (begin == nullptr) return false;
    void** const end = begin + length;
    const auto moved = [this, c, end](void** at) { return end - (ends_[c] - at); };
    std::copy(stock.kept, ends_[c], moved(stock.kept));
    stock.kept = moved(stock.kept);
    stock.next = moved(stock.next);
    stock.first = moved(stock.first);
    stock.low = moved(stock.low);
    begins_[c] = begin;
    ends_[c] = end;
    return true;
  }

  platform::Stocks table_;
  platform::Stocks** user_ = nullptr;
  platform::Stocks* before_ = nullptr;  // what *user_ was
  std::array<void**, kStocked> begins_, ends_;
  std::array<void*, kBegins[kStocked]> places_;  // the first arrays; untouched pages stay so
};

}  // namespace loam::heap
