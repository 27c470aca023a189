// Writes the records of a run: begin, iteration, histogram, series, end, and those of an explained run
// (schema/record.schema.json).
//   Each is one line, built in a static buffer and written with one write(2): no allocation, no standard I/O.
#pragma once

#include "runtime/base/json_lines.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/sync.hpp"
#include "workloads/harness/tm_counters.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace loam::workloads {

// Of the records and of the answer to --describe. The lab reads this one and no other.
inline constexpr int kRecordSchema = 2;

class Recorder {
 public:
  Recorder(const Options& options, const SyncDescription& sync) noexcept : options_(options), sync_(sync) {}

  // tm: of a transactional memory that counts what it does
  void begin(const std::optional<TmRecords>& tm);

  // Opens an iteration record; the caller adds its metrics and calls write().
  base::JsonLine& iteration(unsigned index);

  // Adds to an iteration what only a transactional memory has; nothing without `records`.
  base::JsonLine& add_tm(const TmCounters& counters, const std::optional<TmRecords>& records);

  // Ends the program with exit status 2 if the descriptor does not take the line.
  void write();

  // counts[i]: values in [bounds[i], bounds[i + 1]), the last without upper bound.
  void histogram(std::string_view name, std::span<const std::uint64_t> bounds, std::span<const std::uint64_t> counts);

  // How often transactions aborted before they committed; nothing without `records`.
  void abort_histogram(const TmCounters& counters, const std::optional<TmRecords>& records);

  // Opens a series record inside of its rows; the caller adds one array per row, end()s the rows, and calls write().
  base::JsonLine& series(std::string_view name, std::span<const std::string_view> columns);

  // Opens a record of this kind; the caller adds its fields and calls write().
  base::JsonLine& record(std::string_view kind) { return start(kind); }

  // Lets `write` add the records of an explained run before the last one.
  void explained_by(void (*write)(Recorder&)) noexcept { explanation_ = write; }

  // message: what was found wrong, empty if verified. live_blocks_delta: blocks from the allocator minus live nodes
  void end(bool verified, std::string_view message, std::int64_t live_blocks_delta);

 private:
  base::JsonLine& start(std::string_view kind);

  const Options& options_;
  const SyncDescription& sync_;
  base::JsonLine line_{{}};
  void (*explanation_)(Recorder&) = nullptr;
};

// The answer to --describe: one JSON object on standard output.
// counts_aborts: whether it is a transactional memory that counts what it does
void describe(const SyncDescription& sync, bool counts_aborts);

}  // namespace loam::workloads
