#include "workloads/harness/recorder.hpp"

#include "workloads/harness/build_info.hpp"

#include <cerrno>
#include <cstring>

namespace loam::workloads {
namespace {

constexpr int kSchema = 1;

// The longest record, begin with 1024 processors and 64 parameters, stays under half of it.
constinit char line_buffer[32 * 1024];

}  // namespace

base::JsonLine& Recorder::start(std::string_view kind) {
  line_ = base::JsonLine(line_buffer);
  return line_.object().field("kind", kind);
}

void Recorder::begin(const RecordsInfo& records) {
  auto& line = start("begin");
  line.field("schema", kSchema)
      .field("workload", options_.workload->name)
      .field("sync", sync_.name)
      .field("threads", options_.threads)
      .field("seed", options_.seed)
      .field("blame", options_.blame)
      .field("warmup_ms", options_.warmup_ms)
      .object("parameters");
  for (const auto& item : options_.parameters.items()) {
    if (item.spec->type == ParameterSpec::Type::choice) {
      line.field(item.spec->name, item.spec->choices[static_cast<std::size_t>(item.value)]);
    } else {
      line.field(item.spec->name, item.value);
    }
  }
  line.end().field("preset", kPreset).field("compiler", kCompiler).field("build_id", build_id()).array("cpus");
  for (const unsigned cpu : options_.cpus()) line.value(cpu);
  line.end().field("records_mapping", records.mapping).field("read_set_entry_bytes", records.read_set_entry_bytes);
  write();
}

base::JsonLine& Recorder::iteration(unsigned index) { return start("iteration").field("index", index); }

base::JsonLine& Recorder::add_attempts(const Counters& counters, std::uint64_t operations) {
  if (sync_.aborts == SyncDescription::Aborts::unknown) return line_;
  Counters known = counters;
  if (sync_.aborts == SyncDescription::Aborts::never) known.commits = known.attempts = operations;
  const auto aborts = known.aborts();
  line_.field("commits", known.commits)
      .field("attempts", known.attempts)
      .field("aborts", aborts)
      .field("aborts_same_word", known.aborts_same_word)
      .field("aborts_same_block", known.aborts_same_block)
      .field("aborts_other_block", known.aborts_other_block)
      .field("aborts_other_stripe", known.aborts_other_stripe)
      .field("aborts_capacity", known.aborts_capacity)
      .field("aborts_reprovision", known.aborts_reprovision)
      .field("aborts_interrupt", known.aborts_interrupt)
      .field("aborts_explicit", known.aborts_explicit)
      .field("aborts_unknown", known.aborts_unknown)
      .field("serialised", known.serialised);
  if (known.attempts != 0)
    line_.field("aborts_per_attempt", static_cast<double>(aborts) / static_cast<double>(known.attempts));
  return line_;
}

void Recorder::write() {
  line_.end();
  if (line_.write_to(options_.records)) return;
  reject("--records", options_.records_name, "cannot be written", std::strerror(errno));
}

void Recorder::histogram(std::string_view name, std::span<const std::uint64_t> bounds,
                         std::span<const std::uint64_t> counts) {
  auto& line = start("histogram").field("name", name).array("bounds");
  for (const auto bound : bounds) line.value(bound);
  line.end().array("counts");
  for (const auto count : counts) line.value(count);
  line.end();
  write();
}

base::JsonLine& Recorder::series(std::string_view name, std::span<const std::string_view> columns) {
  auto& line = start("series").field("name", name).array("columns");
  for (const auto column : columns) line.value(column);
  return line.end().array("rows");
}

void Recorder::end(bool verified, std::string_view message, std::int64_t live_blocks_delta) {
  if (explanation_ != nullptr) explanation_(*this);
  start("end").field("verified", verified).field("message", message).field("live_blocks_delta", live_blocks_delta);
  write();
}

}  // namespace loam::workloads
