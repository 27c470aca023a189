// redo_log: a write set that is searched by address, for algorithms that lock nothing before commit.
//   Filter  Every read first checks a filter of 512 marks, in a few instructions. For most words the filter says "not
//           written". A hash of the word's address selects the mark. A mark holds the number of the transaction that
//           set it, the generation: so marks of earlier transactions do not count, and the filter need not be cleared.
//   Search  If a word is marked, its entry is searched: up to eight entries one by one, more by a hash index. The slots
//           of the index have a generation, too. The index grows with the write set.
//   An entry holds only the written bits of a word, because other threads may still change the rest. A read that needs
//   the rest as well reads memory (RedoLog::read).
//   Source  filter: Bloom, CACM 1970, as TL2 (DISC 2006) uses it; linear probing: Knuth, TAOCP 3, 6.4.
#pragma once

#include "runtime/base/check.hpp"
#include "runtime/tm/access.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/logs/log.hpp"
#include "runtime/tm/logs/write_set.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace loam::tm {

// From a word's address to the position of its entry: open addressing with linear probing, at most half full.
// Positions are added in ascending order and removed in descending order, so that a removal leaves the table as it was
// before the addition and needs no tombstones. kGenerationBits: tests use fewer, so that the generations run out.
template <unsigned kGenerationBits>
class BasicWriteIndex {
 public:
  static constexpr unsigned kPositionBits = 64 - kGenerationBits;

  // For write sets of up to `entries_max` entries.
  void reserve(std::size_t entries_max) noexcept {
    LOAM_CHECK(entries_max <= kPositionMask + 1, "tm: a write set of {} entries; its index holds {}", entries_max,
               kPositionMask + 1);
    slots_.reserve(std::bit_ceil(entries_max) * 2, 0, "index of the write set");
  }

  bool in_use() const noexcept { return log2_ != 0; }
  std::size_t slots_in_use() const noexcept { return in_use() ? std::size_t{1} << log2_ : 0; }

  // Forgets everything: the next add() begins another generation.
  void clear() noexcept { log2_ = 0; }

  WriteEntry* find(WriteEntry* entries, const Word* address) const noexcept {
    for (std::size_t i = home(address);; i = next(i)) {
      const std::uint64_t slot = slots_.begin()[i];
      if (slot >> kPositionBits != generation_) return nullptr;
      WriteEntry* const entry = entries + (slot & kPositionMask);
      if (holds(*entry, address)) return entry;
    }
  }

  // entries[count - 1] is new. The first addition takes the entries before it as well.
  void add(const WriteEntry* entries, std::size_t count) noexcept {
    if (count * 2 > slots_in_use()) return build(entries, count);
    insert(entries, count - 1);
  }

  // entries[position] is the last one that is in the index.
  void remove(const WriteEntry* entries, std::size_t position) noexcept {
    std::size_t i = home(address_of(entries[position]));
    while (slots_.begin()[i] != slot_of(position)) i = next(i);
    slots_.begin()[i] = 0;
  }

 private:
  static constexpr std::uint64_t kPositionMask = (std::uint64_t{1} << kPositionBits) - 1;

  std::size_t home(const Word* address) const noexcept {
    return (reinterpret_cast<std::uintptr_t>(address) / kWordBytes * 0x9E3779B97F4A7C15ULL) >> (64 - log2_);
  }
  std::size_t next(std::size_t i) const noexcept { return (i + 1) & (slots_in_use() - 1); }
  std::uint64_t slot_of(std::size_t position) const noexcept { return generation_ << kPositionBits | position; }

  void insert(const WriteEntry* entries, std::size_t position) noexcept {
    std::size_t i = home(address_of(entries[position]));
    while (slots_.begin()[i] >> kPositionBits == generation_) i = next(i);
    slots_.begin()[i] = slot_of(position);
  }

  [[gnu::noinline]] void build(const WriteEntry* entries, std::size_t count) noexcept {
    const auto log2_for = [](std::size_t slots) { return static_cast<unsigned>(std::bit_width(slots)); };
    log2_ = std::max(kLog2Min, log2_for(count * 4));
    if (slots_in_use() > slots_.capacity()) log2_ = log2_for(count * 2);  // as few as will do
    if (slots_in_use() > slots_.capacity()) slots_.full();
    if (generation_++ == kGenerationMax) {
      std::memset(slots_.begin(), 0, touched_ * sizeof(std::uint64_t));
      generation_ = 1;
    }
    if (slots_in_use() > touched_) touched_ = slots_in_use();
    for (std::size_t position = 0; position < count; ++position) insert(entries, position);
  }

  // Most write sets that need an index are built once.
  static constexpr unsigned kLog2Min = 7;
  static constexpr std::uint64_t kGenerationMax = (std::uint64_t{1} << kGenerationBits) - 1;

  Log<std::uint64_t> slots_;      // generation and position; of an older generation, 0 for one: empty
  std::uint64_t generation_ = 0;  // of the slots in use
  std::size_t touched_ = 0;       // slots that any generation has used
  unsigned log2_ = 0;             // of the slots in use; 0: none
};
using WriteIndex = BasicWriteIndex<40>;

// The data that every access reads. Inline accesses of C depend on the order of its members (include/loam/tm_inlined.h).
struct WriteFilter {
  static constexpr unsigned kMarksLog2 = 9;

  // Always odd, so a mark that was never set, 0, matches no generation. There are 128 generations: a mark that is 128
  // transactions old matches again, and costs a search.
  std::uint8_t generation = 1;
  std::uint8_t marks[1U << kMarksLog2]{};  // equal to generation: a word whose hash is this index was written
  WriteEntry* linear_end = nullptr;        // behind the last entry that needs no index

  static constexpr std::size_t place_of(std::uintptr_t word) noexcept {
    return (static_cast<std::uint32_t>(word) * 0x9E3779B1U) >> (32 - kMarksLog2);
  }
  static std::size_t place_of(const Word* word) noexcept { return place_of(reinterpret_cast<std::uintptr_t>(word)); }
};

// Its entries are those of Descriptor::writes up to write_end.
class RedoLog : public WriteFilter {
 public:
  // Up to this many entries are searched one by one.
  static constexpr std::size_t kLinearMax = 8;

  struct Savepoint {
    WriteEntry* write_end;
    std::size_t history;
  };

  void attach(Descriptor& d) noexcept {
    linear_end = d.writes.begin() + kLinearMax;
    index_.reserve(d.writes.capacity());
    history_.reserve();
  }

  // false: the attempt has not written the word.
  [[gnu::always_inline]] bool may_hold(const Word* word) const noexcept { return marks[place_of(word)] == generation; }

  [[gnu::noinline]] WriteEntry* find(const Descriptor& d, const Word* word) const noexcept {
    WriteEntry* entry = d.write_end;
    if (entry == d.writes.begin()) return nullptr;
    // Programs often come back to the word that they have just written, or to another part of it.
    if (holds(*--entry, word)) return entry;
    if (index_.in_use()) return index_.find(d.writes.begin(), word);
    while (entry != d.writes.begin())
      if (holds(*--entry, word)) return entry;
    return nullptr;
  }

  // The value at `address` as the attempt sees it. from_memory() returns the value in memory; it is called if the
  // attempt has not written all bits.
  template <class U, class FromMemory>
  U read(const Descriptor& d, const U* address, FromMemory&& from_memory) const noexcept {
    const WriteEntry* const entry = find(d, word_of(address));
    if (entry == nullptr) return from_memory();
    const unsigned bit = bit_in_word(address);
    const Word wanted = mask_of(sizeof(U), bit);
    if ((entry->mask & wanted) == wanted) return static_cast<U>(entry->value >> bit);
    const Word beneath = Word{from_memory()} << bit;
    return static_cast<U>(((beneath & ~entry->mask) | (entry->value & entry->mask)) >> bit);
  }

  // kNested: an entry that is changed can be restored. record: that of the word, or a dummy
  template <bool kNested>
  [[gnu::always_inline]] void store(Descriptor& d, Word* word, Word value, Word mask, Orec& record) noexcept {
    if (may_hold(word)) [[unlikely]]
      return store_again<kNested>(d, word, value, mask, record);
    append(d, word, value, mask, record);
  }

  // Forgets all writes.
  void clear(Descriptor& d) noexcept {
    d.write_end = d.writes.begin();
    generation = static_cast<std::uint8_t>(generation + 2);
    index_.clear();
    history_.clear();
  }

  Savepoint save(const Descriptor& d) const noexcept { return {d.write_end, history_.size()}; }

  // Undoes the writes since the savepoint. Their marks stay, which is harmless: a marked word need not be written.
  void restore(Descriptor& d, const Savepoint& savepoint) noexcept {
    history_.undo_to(savepoint.history);
    while (d.write_end != savepoint.write_end) {
      --d.write_end;
      if (index_.in_use()) index_.remove(d.writes.begin(), position(d, d.write_end));
    }
    if (d.write_end <= linear_end) index_.clear();  // the next entries are not added to it
  }

 private:
  static std::size_t position(const Descriptor& d, const WriteEntry* entry) noexcept {
    return static_cast<std::size_t>(entry - d.writes.begin());
  }

  [[gnu::always_inline]] void append(Descriptor& d, Word* word, Word value, Word mask, Orec& record) noexcept {
    WriteEntry* const entry = d.write_end;
    fill(*entry, nullptr, word, value, mask, record);
    marks[place_of(word)] = generation;
    if (mask != ~Word{0}) d.special = true;  // its commit writes parts of words
    d.write_end = entry + 1;
    if (entry >= linear_end) [[unlikely]]
      index_last(d);
  }

  template <bool kNested>
  [[gnu::noinline]] void store_again(Descriptor& d, Word* word, Word value, Word mask, Orec& record) noexcept {
    WriteEntry* const entry = find(d, word);
    if (entry == nullptr) return append(d, word, value, mask, record);
    if constexpr (kNested) history_.note(*entry);
    merge(d, *entry, value, mask);
  }

  [[gnu::noinline]] void index_last(Descriptor& d) noexcept {
    if (d.write_end == d.write_limit) d.writes.full();
    index_.add(d.writes.begin(), position(d, d.write_end));
  }

  WriteIndex index_;
  WriteHistory history_;
};

}  // namespace loam::tm
