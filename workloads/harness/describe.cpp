// Writes the answer to --describe. The lab takes names, units, ranges and defaults from it, and has no list of its own.
#include "workloads/harness/build_info.hpp"
#include "workloads/harness/recorder.hpp"

#include <unistd.h>

namespace loam::workloads {
namespace {

using base::JsonLine;

void put_parameters(JsonLine& line, std::span<const ParameterSpec> specs) {
  line.array("parameters");
  for (const auto& spec : specs) {
    line.object().field("name", spec.name);
    if (spec.type == ParameterSpec::Type::choice) {
      line.field("type", "choice").array("choices");
      for (const auto choice : spec.choices) line.value(choice);
      line.end().field("default", spec.choices[static_cast<std::size_t>(spec.fallback)]);
    } else if (spec.type == ParameterSpec::Type::file) {
      line.field("type", "file").field("default", "");
    } else {
      line.field("type", "integer").field("min", spec.min).field("max", spec.max).field("default", spec.fallback);
    }
    line.field("unit", spec.unit).field("help", spec.help);
    if (!spec.labels.empty()) {
      line.array("labels");
      for (const auto label : spec.labels) line.value(label);
      line.end();
    }
    if (!spec.label.empty()) line.field("label", spec.label);
    line.end();
  }
  line.end();
}

constexpr std::string_view name_of(MetricSpec::Better better) {
  switch (better) {
    case MetricSpec::Better::higher:
      return "higher";
    case MetricSpec::Better::lower:
      return "lower";
    case MetricSpec::Better::neither:
      break;
  }
  return "neither";
}

constexpr std::string_view name_of(MetricSpec::Kind kind) {
  switch (kind) {
    case MetricSpec::Kind::count:
      return "count";
    case MetricSpec::Kind::time:
      return "time";
    case MetricSpec::Kind::bytes:
      return "bytes";
    case MetricSpec::Kind::ratio:
      break;
  }
  return "ratio";
}

void put_metrics(JsonLine& line, std::span<const MetricSpec> metrics) {
  for (const auto& metric : metrics) {
    line.object()
        .field("name", metric.name)
        .field("unit", metric.unit)
        .field("better", name_of(metric.better))
        .field("kind", name_of(metric.kind));
    if (metric.kind == MetricSpec::Kind::ratio)
      line.array("of").value(metric.numerator).value(metric.denominator).end();
    line.end();
  }
}

// Names, words and meanings of the causes of aborts, which reports use.
void put_abort_causes(JsonLine& line) {
  line.object("tm").array("abort_causes");
  for (const auto& row : tm::kAbortCauseTable)
    line.object().field("name", row.name()).field("words", row.words).field("meaning", row.meaning).end();
  line.end().end();
}

void put_kinds(JsonLine& line, const SyncKinds& kinds) {
  line.array("kinds");
  for (std::size_t i = 0; i < kSyncKindNames.size(); ++i)
    if (kinds.contains(static_cast<SyncKind>(i))) line.value(kSyncKindNames[i]);
  line.end();
}

}  // namespace

void describe(const SyncDescription& sync, bool counts_aborts) {
  static constinit char buffer[64 * 1024];
  JsonLine line(buffer);
  line.object().field("schema", kRecordSchema).object("sync");
  line.field("name", sync.name)
      .field("summary", sync.summary)
      .field("kind", name_of(sync.kind))
      .field("cpus_reserved", sync.cpus_reserved)
      .field("threads_max", sync.threads_max)
      .field("paper", sync.paper)
      .field("guarantees", sync.guarantees)
      .field("blame", sync.blame);
  if (!sync.needs.empty()) line.field("needs", sync.needs).field("lacks", sync.reason_against());
  if (sync.caution != nullptr) line.field("caution", sync.caution());
  put_parameters(line, sync.parameters);
  if (counts_aborts) put_abort_causes(line);
  line.end()
      .object("build")
      .field("compiler", kCompiler)
      .field("preset", kPreset)
      .field("flags", kBuildFlags)
      .field("revision", "")
      .end()
      .array("workloads");
  for (const auto& workload : base::registered<Workload>()) {
    if (!workload.kinds.contains(sync.kind)) continue;
    line.object().field("name", workload.name).field("summary", workload.summary);
    put_kinds(line, workload.kinds);
    put_parameters(line, workload.parameters);
    line.array("metrics");
    put_metrics(line, workload.metrics);
    if (counts_aborts) put_metrics(line, tm_metrics());
    if (counts_aborts && !sync.needs.empty()) put_metrics(line, hardware_metrics());
    if (counts_aborts && sync.switches) put_metrics(line, switching_metrics());
    line.end().end();
  }
  line.end().end();
  if (!line.write_to(STDOUT_FILENO)) reject("--describe", "", "standard output cannot be written");
}

}  // namespace loam::workloads
