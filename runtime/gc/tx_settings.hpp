// The settings and the statistics of object transactions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>

namespace loam::gc {

enum class Placement { heap, dedicated, arena, unlogged };

// When duplicates are removed from the read log. This accesses each object of the log twice. It pays off if logs are
// long and objects are read again and again, or before a collection that accesses the objects anyway.
//   full: before full collections. If it removes less than a quarter of the log, or would by a sample, it is skipped
//   for the thread's next 15 collections, unless a request for memory would be refused.
enum class Compaction { full, every, off };

// What a transaction does when it finds an object that another transaction owns.
enum class Contention {
  suicide,  // aborts, and begins again at once
  delay,    // aborts, and begins again when that object is free
  backoff,  // aborts, and waits a random time that doubles
};

struct TxSettings {
  Placement placement = Placement::dedicated;
  std::size_t chunk_bytes = 8192;  // of logs in the heap or the dedicated heap, with 24 bytes of its own
  bool lock_free_chunks = false;   // the dedicated heap's free list
  bool checked_allocation =
      false;  // a control: chunks come from an allocator that looks what it is asked for (checking.hpp)
  // All logs of a transaction: one that needs more is rolled back and LogsTooLong is thrown. An arena has 256 MiB
  // for each log, the dedicated heap 4 GiB for all.
  std::size_t log_bytes_max = std::size_t{1} << 30;

  // A read takes 4 bytes of a log, where the object is no large one and the heap has no more than 32 GiB of addresses.
  // false: 16 for each, the two words of the systems that paper 002 measured.
  bool short_reads = true;

  // Filters of duplicates.
  bool hash = true;     // a table of 2048 recent objects and words of this transaction
  bool bitmap = true;   // in an update entry: which words are in the undo log; at the outermost level
  bool locals = false;  // objects that the transaction made are known as such: their words are not logged

  // Opacity: whether every running transaction sees one consistent state of memory. Without it, a transaction that will
  // abort may see inconsistent states until it validates, as in the systems that the paper measured.
  bool opaque = true;
  // A transaction that aborts gives the memory of its objects back.
  bool nursery = false;

  Compaction compaction = Compaction::full;
  bool watermark = true;  // a minor collection looks at new entries only

  Contention contention = Contention::delay;
  unsigned alone_after = 32;  // aborts, after which no other transaction begins until this one ends

  bool collect_at_enlistments = false;  // tests
};

struct TxStatistics {
  std::uint64_t commits = 0, aborts = 0, inner_aborts = 0, alone = 0;
  std::uint64_t reads = 0, updates = 0, undos = 0;  // entries that were made, also of attempts that aborted
  std::uint64_t long_reads = 0;                     // of reads: those of 16 bytes
  std::uint64_t extensions = 0;
  std::uint64_t returned_bytes = 0;  // of objects of attempts that aborted

  TxStatistics& operator+=(const TxStatistics& other) noexcept {
    commits += other.commits;
    aborts += other.aborts;
    inner_aborts += other.inner_aborts;
    alone += other.alone;
    reads += other.reads;
    updates += other.updates;
    undos += other.undos;
    long_reads += other.long_reads;
    extensions += other.extensions;
    returned_bytes += other.returned_bytes;
    return *this;
  }
};

// A transaction's logs exceed TxSettings::log_bytes_max, or the addresses that their place has. It was rolled back.
struct LogsTooLong : std::exception {
  LogsTooLong(std::size_t bytes, std::size_t most) noexcept;
  const char* what() const noexcept override { return text_.data(); }

  std::size_t log_bytes, bytes_max;

 private:
  std::array<char, 192> text_{};
};

}  // namespace loam::gc
