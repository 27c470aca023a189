// Factors: the design choices of an allocator, and their values by name. A design is a list of factors with values,
// "metadata=block,return-to=owner"; a preset of allocators/design/ is such a list.
//   A new choice is a member of Factors and its row: parsing, the dump and the messages read the table.
#pragma once

#include "runtime/base/format.hpp"
#include "runtime/base/nearest.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace loam::heap::design {

enum class Metadata : std::uint64_t { beside, slab, block };
enum class ReturnTo : std::uint64_t { thread, owner };
enum class Heaps : std::uint64_t { thread, processor, arenas, contended, one };
enum class Guard : std::uint64_t { lock, atomic, transaction, elided };
enum class Classes : std::uint64_t { quarters, sixteens, powers };
enum class Order : std::uint64_t { latest, lowest, fullest };
enum class Carve : std::uint64_t { up, down };
enum class Pool : std::uint64_t { one, processor };
enum class Purge : std::uint64_t { never, at_once };

// Each value as a number: a count, bytes, or the index of a name. What they mean stands in the table's rows.
struct Factors {
  std::uint64_t metadata = 0, return_to = 0, heaps = 0, guard = 0, classes = 0, order = 0, carve = 0, pool = 0,
                purge = 0;
  std::uint64_t slab = 65536, slab_used = 0, heap_bytes = 0, first_heap = 0, heap_count = 0, least = 8, header = 128;
  std::uint64_t cache = 32, cache_largest = 32768, batch = 16, batch_grows = 0, emptiness = 0;

  bool is(Metadata v) const noexcept { return metadata == static_cast<std::uint64_t>(v); }
  bool is(ReturnTo v) const noexcept { return return_to == static_cast<std::uint64_t>(v); }
  bool is(Heaps v) const noexcept { return heaps == static_cast<std::uint64_t>(v); }
  bool is(Guard v) const noexcept { return guard == static_cast<std::uint64_t>(v); }
  bool is(Classes v) const noexcept { return classes == static_cast<std::uint64_t>(v); }
  bool is(Order v) const noexcept { return order == static_cast<std::uint64_t>(v); }
  bool is(Carve v) const noexcept { return carve == static_cast<std::uint64_t>(v); }
  bool is(Pool v) const noexcept { return pool == static_cast<std::uint64_t>(v); }
  bool is(Purge v) const noexcept { return purge == static_cast<std::uint64_t>(v); }
};

struct FactorRow {
  std::string_view name;
  std::uint64_t Factors::* member;
  std::array<std::string_view, 5> values;  // names; none: it is a number from least to most
  std::uint64_t least = 0, most = 0;
};

// What is known of a slab has room in the least header (heaps.hpp asserts it).
inline constexpr std::uint64_t kHeaderLeast = 128;

inline constexpr std::array<FactorRow, 21> kFactorTable{{
    // where a block's class and slab are looked up: a table beside all blocks, the slab's first lines, or 8 bytes in front
    {"metadata", &Factors::metadata, {"beside", "slab", "block"}},
    // who gets a block that another heap's slab holds: the cache of the thread that frees it, or its slab at once
    {"return-to", &Factors::return_to, {"thread", "owner"}},
    // heaps of slabs: for each thread, each processor, a number of them in turn, another one only where all are locked, or one
    {"heaps", &Factors::heaps, {"thread", "processor", "arenas", "contended", "one"}},
    // how a heap is shared: a lock, its thread alone and an atomic list of what others free, a hardware transaction, or
    // one where there are any and a lock else
    {"guard", &Factors::guard, {"lock", "atomic", "transaction", "elided"}},
    // 8, 16, 32, 48 ... 128 and four per doubling; multiples of 16; powers of two
    {"classes", &Factors::classes, {"quarters", "sixteens", "powers"}},
    // which slab serves next
    {"order", &Factors::order, {"latest", "lowest", "fullest"}},
    // from which end a slab is cut
    {"carve", &Factors::carve, {"up", "down"}},
    // where empty slabs wait
    {"pool", &Factors::pool, {"one", "processor"}},
    // whether the memory of an empty slab goes back to the system
    {"purge", &Factors::purge, {"never", "at-once"}},
    // bytes of a slab, a multiple of which it begins at; 0: none, blocks of all classes are cut from the heap's memory
    {"slab", &Factors::slab, {}, 0, 1 << 21},
    // bytes of a slab that are cut; 0: all
    {"slab-used", &Factors::slab_used, {}, 0, 1 << 21},
    // bytes of the pieces of addresses that heaps cut their slabs from, multiples of which they begin at; 0: no pieces
    {"heap-bytes", &Factors::heap_bytes, {}, 0, 1 << 28},
    // bytes at the start of the first heap's first piece that serve no block: a heap at the program break begins at no
    // multiple of heap-bytes; where slab=0
    {"first-heap", &Factors::first_heap, {}, 0, 1 << 27},
    // heaps; 0: four per processor. Of heaps=arenas and heaps=contended
    {"heap-count", &Factors::heap_count, {}, 0, 512},
    // bytes of the shortest block
    {"least", &Factors::least, {}, 8, 32},
    // bytes at the start of a slab that serve no block, where metadata=slab: what is known of it lies there
    {"header", &Factors::header, {}, kHeaderLeast, 4096},
    // free blocks of a class that a thread keeps
    {"cache", &Factors::cache, {}, 0, 4096},
    // bytes of the longest block that it keeps
    {"cache-largest", &Factors::cache_largest, {}, 0, 32768},
    // blocks that a thread takes from its heap at once
    {"batch", &Factors::batch, {}, 1, 512},
    // 1: the first batch of a class is one block, each further one a block longer
    {"batch-grows", &Factors::batch_grows, {}, 0, 1},
    // percent of a heap that must be free before its emptiest slab goes to the global heap; 0: only empty slabs go
    {"emptiness", &Factors::emptiness, {}, 0, 99},
}};

// Text that does not fit is cut.
inline std::string_view describe(const Factors& factors, std::span<char> buffer) noexcept {
  base::TextWriter out(buffer);
  for (const FactorRow& row : kFactorTable) {
    if (&row != kFactorTable.data()) out.put(',');
    out.put(row.name);
    out.put('=');
    const std::uint64_t value = factors.*row.member;
    if (row.values[0].empty())
      out.value(value);
    else
      out.put(row.values[value]);
  }
  return out.text();
}

// What cannot be; empty: the factors fit together. what: room for the text
inline std::string_view misfit(const Factors& f) noexcept {
  if (f.is(Guard::atomic) && !f.is(Heaps::thread))
    return "guard=atomic needs a heap that one thread alone takes from: heaps=thread";
  if (f.slab == 0 && !f.is(Metadata::block)) return "slab=0 needs a class in front of each block: metadata=block";
  if (f.slab == 0 && f.is(Guard::atomic)) return "slab=0 has no slab to keep what others free: guard=lock";
  if (f.slab == 0 && f.emptiness != 0) return "slab=0 has no slab that could be empty: emptiness=0";
  if (f.slab == 0 && f.heap_bytes == 0) return "slab=0 cuts from the heap's piece of addresses: heap-bytes=67108864";
  if (f.slab != 0 && (f.slab < 4096 || !std::has_single_bit(f.slab)))
    return "slab must be 0 or a power of two from 4096";
  if (f.slab_used > f.slab) return "slab-used must be at most slab";
  if (f.heap_bytes != 0 && (!std::has_single_bit(f.heap_bytes) || f.heap_bytes < f.slab))
    return "heap-bytes must be 0 or a power of two, at least slab";
  if (f.slab == 0 && f.heap_bytes < (1 << 20)) return "heap-bytes must be at least 1048576 where slab=0";
  if (f.first_heap != 0 && (f.slab != 0 || f.first_heap % 16 != 0 || f.first_heap > f.heap_bytes / 2))
    return "first-heap needs slab=0, and must be a multiple of 16, at most half of heap-bytes";
  if (f.least != 8 && f.least != 16 && f.least != 32) return "least must be 8, 16 or 32";
  if (f.is(Metadata::slab) && f.header % 16 != 0) return "header must be a multiple of 16";
  if (f.is(Metadata::slab) && f.header > (f.slab_used != 0 ? f.slab_used : f.slab) / 4)
    return "header must be at most a quarter of the slab";
  return {};
}

// The text up to `mark`, which is cut off with it. No substr(), which may throw: a library that is preloaded has no C++
// library to throw with.
inline std::string_view cut_at(std::string_view& text, char mark) noexcept {
  const std::size_t at = std::min(text.find(mark), text.size());
  const std::string_view front(text.data(), at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return front;
}

// Applies "name=value,name=value" to `factors`. returns an empty text, or what is wrong, written into `message`
inline std::string_view apply(std::string_view text, Factors& factors, std::span<char> message) noexcept {
  const auto name_of = [](const FactorRow& row) { return row.name; };
  while (!text.empty()) {
    const std::string_view part = cut_at(text, ',');
    std::string_view given = part;
    const std::string_view key = cut_at(given, '=');
    const FactorRow* found = nullptr;
    for (const FactorRow& row : kFactorTable)
      if (row.name == key) found = &row;
    if (found == nullptr)
      return base::format_to(message, "there is no factor {}; did you mean {}?", key,
                             base::nearest(key, kFactorTable, name_of));
    if (!found->values[0].empty()) {
      std::size_t index = 0;
      while (index < found->values.size() && (found->values[index].empty() || found->values[index] != given)) ++index;
      if (index == found->values.size()) {
        base::TextWriter out(message);
        out.put(key);
        out.put('=');
        out.put(given);
        out.put(": there is no such value; there are");
        for (const std::string_view name : found->values) {
          if (name.empty()) continue;
          out.put(' ');
          out.put(name);
        }
        return out.text();
      }
      factors.*found->member = index;
      continue;
    }
    std::uint64_t value = 0;
    const auto end = std::from_chars(given.data(), given.data() + given.size(), value);
    if (given.empty() || end.ptr != given.data() + given.size() || end.ec != std::errc{} || value < found->least ||
        value > found->most)
      return base::format_to(message, "{}={}: must be an integer from {} to {}", key, given, found->least, found->most);
    factors.*found->member = value;
  }
  return misfit(factors);
}

}  // namespace loam::heap::design
