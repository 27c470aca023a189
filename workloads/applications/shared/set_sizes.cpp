#include "workloads/applications/shared/set_sizes.hpp"

#include "runtime/base/format.hpp"
#include "runtime/platform/pages.hpp"

#include <algorithm>

namespace loam::workloads::applications::set_sizes {
namespace {

constexpr unsigned kWordShift = 3, kLineShift = 6;

// Distinct numbers of one transaction: open addressing; entries of earlier transactions count as empty.
class Distinct {
 public:
  // Clears the set.
  void begin() noexcept {
    if (entries_ == nullptr)
      entries_ = static_cast<Entry*>(platform::map_lazy_or_die(kEntries * sizeof(Entry), "the counting of sets"));
    ++generation_;
    count_ = 0;
  }

  void add(std::uint64_t number) noexcept {
    LOAM_CHECK(count_ < kEntries / 2, "a transaction has more than {} distinct words; choose a smaller size", count_);
    for (std::size_t at = number * 0x9e3779b97f4a7c15u >> (64 - kEntriesLog2);; at = (at + 1) % kEntries) {
      Entry& entry = entries_[at];
      if (entry.generation != generation_) {
        entry = {number, generation_};
        ++count_;
        return;
      }
      if (entry.number == number) return;
    }
  }

  std::uint64_t count() const noexcept { return count_; }

 private:
  struct Entry {
    std::uint64_t number, generation;
  };
  static constexpr unsigned kEntriesLog2 = 22;
  static constexpr std::size_t kEntries = std::size_t{1} << kEntriesLog2;

  Entry* entries_ = nullptr;
  std::uint64_t generation_ = 0, count_ = 0;
};

struct Side {
  Distinct words, lines;
  std::uint64_t accesses = 0;

  void begin() noexcept {
    words.begin();
    lines.begin();
    accesses = 0;
  }
  void add(const void* address) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    ++accesses;
    words.add(at >> kWordShift);
    lines.add(at >> kLineShift);
  }
};

struct SideSums {
  std::uint64_t accesses = 0, words = 0, lines = 0, words_max = 0;

  void add(const Side& side) noexcept {
    accesses += side.accesses;
    words += side.words.count();
    lines += side.lines.count();
    words_max = std::max(words_max, side.words.count());
  }
};

struct Sums {
  std::uint64_t transactions = 0, reading_only = 0, allocations = 0, allocated_bytes = 0, frees = 0;
  SideSums reads, writes;
};

constinit Side reads, writes;
constinit Sums sums[kSitesMax];
constinit unsigned current = 0;
constinit bool inside = false;

}  // namespace

void begin(unsigned site) noexcept {
  LOAM_CHECK(!inside, "a transaction begins within another one");
  current = site;
  inside = true;
  reads.begin();
  writes.begin();
}

void read(const void* address) noexcept { reads.add(address); }
void wrote(const void* address) noexcept { writes.add(address); }

void allocated(std::size_t bytes) noexcept {
  ++sums[current].allocations;
  sums[current].allocated_bytes += bytes;
}

void freed() noexcept { ++sums[current].frees; }

void end() noexcept {
  auto& sum = sums[current];
  ++sum.transactions;
  sum.reading_only += writes.accesses == 0 ? 1 : 0;
  sum.reads.add(reads);
  sum.writes.add(writes);
  inside = false;
}

void record(Recorder& recorder, std::span<const std::string_view> names) {
  static constexpr std::string_view kColumns[] = {
      "transactions",   "reading_only",    "reads",         "words_read",    "lines_read",
      "words_read_max", "writes",          "words_written", "lines_written", "words_written_max",
      "allocations",    "allocated_bytes", "frees"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& sum = sums[i];
    if (sum.transactions == 0) continue;
    char name[64];
    recorder.series(base::format_to(name, "sets_{}", names[i].substr(std::string_view("tx_").size())), kColumns)
        .array()
        .value(sum.transactions)
        .value(sum.reading_only)
        .value(sum.reads.accesses)
        .value(sum.reads.words)
        .value(sum.reads.lines)
        .value(sum.reads.words_max)
        .value(sum.writes.accesses)
        .value(sum.writes.words)
        .value(sum.writes.lines)
        .value(sum.writes.words_max)
        .value(sum.allocations)
        .value(sum.allocated_bytes)
        .value(sum.frees)
        .end()
        .end();
    recorder.write();
  }
}

}  // namespace loam::workloads::applications::set_sizes
