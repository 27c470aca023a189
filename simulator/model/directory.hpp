// The directory: where each line of memory is, and the history of lines that moved between cores.
//
//   D1 sharers = the cores whose first-level cache has the line.   D2 owner >= 0: sharers = {owner}, in state exclusive or
//   modified, and no cache of another group or node has the line.  D3 groups, nodes: the outer caches that have it.
#pragma once

#include "simulator/model/arena.hpp"
#include "simulator/model/core_set.hpp"
#include "simulator/model/counts.hpp"
#include "simulator/model/machine.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

namespace loam::simulator {

// What is remembered of a line that a core lost to another one, or that a transaction waits on. What each transfer needs comes
// first.
struct alignas(64) History {
  std::uint64_t busy_until = 0;   // its transfers happen one after the other
  std::uint64_t last_change = 0;  // when it last changed hands
  std::uint64_t first_now = 0, last_now = 0;
  std::uint64_t transfers = 0;
  // By core: from which order on others write what it does not have; 0: it did not lose the line, or has it again.
  std::uint32_t* lost = nullptr;
  static constexpr std::uint32_t kAborted = ~std::uint32_t{0};  // its own transaction had written it, and aborted
  std::uint64_t line = 0;
  // The order of writes and losses, to tell true from false sharing: a byte that was written after a core lost the line
  // was written by another one. 0: never.
  std::uint32_t order = 0;
  bool changed_hands = false;
  CoreSet tx_readers;  // whose transaction read it, although their first-level cache has dropped it
  CoreSet takers;
  std::uint64_t true_sharing = 0, false_sharing = 0, aborts = 0, false_conflicts = 0;
  LineReport::Site sites[LineReport::kSites];
  std::uint32_t byte_order[64] = {};
  // Whose late write (wrote_late) gave the byte its order, counted from 1; 0: a write that everybody but its core learns of.
  std::uint8_t late_writer[64] = {};
  History* next = nullptr;

  void wrote(std::uint64_t bytes) noexcept {
    if (bytes == 0) return;
    ++order;
    for (std::uint64_t rest = bytes; rest != 0; rest &= rest - 1) {
      byte_order[std::countr_zero(rest)] = order;
      late_writer[std::countr_zero(rest)] = 0;
    }
  }
  // A write that drained while the core had the line, told after the core lost it. What others have written since it lost
  // the line stays theirs.
  void wrote_late(unsigned core, std::uint64_t bytes) noexcept {
    ++order;
    for (std::uint64_t rest = bytes; rest != 0; rest &= rest - 1) {
      const int byte = std::countr_zero(rest);
      if (lost[core] != 0 && byte_order[byte] >= lost[core] && late_writer[byte] != core + 1) continue;
      byte_order[byte] = order;
      late_writer[byte] = static_cast<std::uint8_t>(core + 1);
    }
  }
  void lose(unsigned core) noexcept { lost[core] = order + 1; }
  // Times this, eight bytes that are 0 or 1 are eight bits in the highest byte, the lowest of them first.
  static constexpr std::uint64_t kGather = 0x0102'0408'1020'4080;
  // The bytes that other cores have written since this one lost the line.
  std::uint64_t written_since_loss(unsigned core) const noexcept {
    const std::uint32_t since = lost[core];
    const auto own = static_cast<std::uint8_t>(core + 1);
    std::uint8_t written[64];
    for (unsigned byte = 0; byte < 64; ++byte) {
      const bool later = byte_order[byte] >= since, foreign = late_writer[byte] != own;
      written[byte] = static_cast<std::uint8_t>(later & foreign);
    }
    std::uint64_t bytes = 0;
    for (unsigned word = 0; word < 8; ++word) {
      std::uint64_t eight;
      std::memcpy(&eight, written + 8 * word, sizeof eight);
      bytes |= (eight * kGather >> 56) << 8 * word;
    }
    return bytes;
  }

  void moved(unsigned core, std::uint64_t now, std::uintptr_t pc) noexcept {
    if (transfers++ == 0) first_now = now;
    last_now = now;
    last_change = now;
    changed_hands = true;
    takers.add(core);
    site(pc);
  }

  // Counts a place in the code; the rarest gives way to a new one, which inherits its count (Metwally et al., ICDT 2005).
  void site(std::uintptr_t pc) noexcept {
    LineReport::Site* rarest = sites;
    for (auto& each : sites) {
      if (each.pc == pc && each.count != 0) {
        ++each.count;
        return;
      }
      if (each.count < rarest->count) rarest = &each;
    }
    *rarest = {pc, rarest->count + 1};
  }
};

// One line of memory: one cache line of the host.
struct alignas(64) Line {
  CoreSet sharers;
  CoreSet groups;  // whose second-level cache has it; numbers of groups
  CoreSet seen;    // the cores that ever had it
  History* history = nullptr;
  std::uint16_t nodes = 0;  // whose third-level cache has it
  std::int16_t owner = -1;
  bool uncached = false;  // Coherence::none: several cores use it and one writes
  bool changed = false;   // Coherence::none: somebody wrote it

  bool hot(std::uint64_t now, std::uint64_t window) const noexcept {
    return history != nullptr && history->changed_hands && history->last_change + window > now;
  }
};
static_assert(sizeof(Line) == 64);

class Directory {
 public:
  void init(Arena& arena, const Machine& machine) noexcept {
    arena_ = &arena;
    cores_ = machine.cores;
    page_lines_ = machine.page_bytes / machine.line_bytes;
    top_ = arena.zeros<Block**>(std::size_t{1} << kTopBits);
    recent_ = arena.zeros<Recent>(kRecent);
  }

  // What is known of a line; nullptr: nobody used its neighbourhood.
  const Line* find(std::uint64_t line) const noexcept {
    const std::uint64_t number = line / kBlockLines;
    Recent& recent = recent_[number % kRecent];
    if (recent.number != number + 1) {
      Block* const* const middle = top_[top_index(line)];
      if (middle == nullptr || middle[middle_index(line)] == nullptr) return nullptr;
      recent = {number + 1, middle[middle_index(line)]};
    }
    return &recent.block->lines[line % kBlockLines];
  }

  // Where a line of this neighbourhood, which is known, was found last; nullptr: elsewhere.
  const Line* recent(std::uint64_t line) const noexcept {
    const std::uint64_t number = line / kBlockLines;
    const Recent& recent = recent_[number % kRecent];
    return recent.number == number + 1 ? &recent.block->lines[line % kBlockLines] : nullptr;
  }

  // The line; the first use of its page says which node it belongs to.
  Line& get(std::uint64_t line, unsigned node) noexcept { return block_of(line, node).lines[line % kBlockLines]; }

  unsigned home(std::uint64_t line, unsigned node) noexcept { return block_of(line, node).home; }

  History& history(Line& entry, std::uint64_t line) noexcept {
    if (entry.history == nullptr) {
      auto* const made = arena_->array<History>(1);
      made->lost = arena_->zeros<std::uint32_t>(cores_);
      made->line = line;
      made->next = histories_;
      entry.history = histories_ = made;
    }
    return *entry.history;
  }

  template <class Visit>
  void for_each_history(Visit visit) const {
    for (History* each = histories_; each != nullptr; each = each->next) visit(*each);
  }

 private:
  static constexpr unsigned kBlockLines = 64, kTopBits = 19, kMiddleBits = 18;

  struct Block {
    Line lines[kBlockLines];
    unsigned home = 0;
  };

  // Blocks that were asked for lately, each at the place of its number: one step instead of two through tables of megabytes.
  static constexpr std::uint64_t kRecent = 1024;
  struct Recent {
    std::uint64_t number;  // + 1; 0: none
    Block* block;
  };

  static std::uint64_t top_index(std::uint64_t line) noexcept {
    return (line / kBlockLines >> kMiddleBits) & ((std::uint64_t{1} << kTopBits) - 1);
  }
  static std::uint64_t middle_index(std::uint64_t line) noexcept {
    return line / kBlockLines & ((std::uint64_t{1} << kMiddleBits) - 1);
  }

  Block& block_of(std::uint64_t line, unsigned node) noexcept {
    const std::uint64_t number = line / kBlockLines;
    Recent& recent = recent_[number % kRecent];
    if (recent.number != number + 1) recent = {number + 1, &block_of_slow(line, node)};
    return *recent.block;
  }

  Block& block_of_slow(std::uint64_t line, unsigned node) noexcept {
    Block**& middle = top_[top_index(line)];
    if (middle == nullptr) [[unlikely]]
      middle = arena_->zeros<Block*>(std::size_t{1} << kMiddleBits);
    Block*& block = middle[middle_index(line)];
    if (block == nullptr) [[unlikely]] {
      block = arena_->array<Block>(1);
      // Pages of several blocks: the first one of the page remembers.
      const std::uint64_t first = line & ~std::uint64_t{page_lines_ - 1};
      block->home = first / kBlockLines == line / kBlockLines ? node : block_of(first, node).home;
    }
    return *block;
  }

  Arena* arena_ = nullptr;
  unsigned cores_ = 0;
  std::uint32_t page_lines_ = 0;
  Block*** top_ = nullptr;
  Recent* recent_ = nullptr;
  History* histories_ = nullptr;
};

}  // namespace loam::simulator
