#include "workloads/transactional/shared/intset.hpp"

#include "runtime/base/format.hpp"
#include "runtime/platform/pages.hpp"
#include "structures/sets.hpp"

namespace loam::workloads::intset {
namespace {

using structures::Sets;

constexpr std::int64_t kRangeMax = 1 << 26;

constexpr std::string_view kGenerators[] = {"fast", "erand48"};
constexpr std::string_view kHashes[] = {"multiplicative", "identity"};
constexpr std::string_view kFrees[] = {"plain", "overwriting"};

constexpr ParameterSpec kParameters[] = {
    ParameterSpec::choice("structure", Sets::kNames, "what the set is made of")
        .called(Sets::kLabels)
        .with_default(Sets::place("list")),
    ParameterSpec::integer("update_percent", 60, 0, kPercent, "%",
                           "share of updates, alternately insert and remove; the rest are look-ups")
        .called("{}\u00a0% updates"),
    ParameterSpec::integer("elements", 4096, 0, kRangeMax, "1", "keys in the set at the start; at most range")
        .called("{} elements"),
    ParameterSpec::integer("range", 8192, 1, kRangeMax, "1", "keys are drawn from [0, range)"),
    kTimedPart,
    ParameterSpec::integer("operations", 0, 0, std::int64_t{1} << 40, "1",
                           "operations per thread instead of a duration, without warm-up; 0: use duration_ms"),
    ParameterSpec::choice("generator", kGenerators,
                          "fast: one draw of xoroshiro128++ per operation; erand48: two draws of libc's generator"),
    ParameterSpec::choice("hash", kHashes,
                          "hash set only: multiplicative spreads the keys, identity packs them densely"),
    ParameterSpec::choice(
        "frees", kFrees,
        "overwriting: a removal writes each word of the node that it frees, as TinySTM's stm_free does, so "
        "that whoever has read it, or shares its ownership record, aborts"),
};

void check_parameters(const ParameterValues& parameters) {
  const auto elements = parameters.integer("elements"), range = parameters.integer("range");
  if (elements <= range) return;
  char value[32], limit[96];
  reject("-p elements", base::format_to(value, "{}", elements),
         base::format_to(limit, "{} distinct keys do not fit into range={}", elements, range),
         "raise range or lower elements");
}

constinit WorkerResult results_of_threads[kThreadsMax];

}  // namespace

Workload workload(bool (*run)(const Options& options, Recorder& recorder)) {
  return {.name = "intset",
          .summary = "look-ups, insertions and removals in a shared set of integers",
          .kinds = {SyncKind::transactional, SyncKind::lock, SyncKind::delegation, SyncKind::none},
          .parameters = kParameters,
          .metrics = kRateMetrics,
          .check = check_parameters,
          .run = run};
}

Settings::Settings(const Options& options)
    : structure(options.parameters.choice("structure")),
      multiplicative(options.parameters.choice("hash") == "multiplicative"),
      erand48(options.parameters.choice("generator") == "erand48"),
      overwrites(options.parameters.choice("frees") == "overwriting"),
      range(static_cast<std::uint32_t>(options.parameters.integer("range"))),
      update_percent(static_cast<std::uint32_t>(options.parameters.integer("update_percent"))),
      seed(options.seed),
      elements(static_cast<std::uint64_t>(options.parameters.integer("elements"))),
      duration_ms(static_cast<std::uint64_t>(options.parameters.integer("duration_ms"))),
      operations(static_cast<std::uint64_t>(options.parameters.integer("operations"))) {
  if (operations != 0) {
    duration_ms = 0;
  } else {
    operations = ~std::uint64_t{0};
  }
}

std::span<WorkerResult> worker_results(unsigned threads) noexcept { return {results_of_threads, threads}; }

ContentCheck::ContentCheck(const Settings& settings)
    : settings_(settings),
      present_(static_cast<std::uint8_t*>(platform::map_lazy_or_die(settings.range, "the check of the contents"))) {}

ContentCheck::~ContentCheck() { platform::unmap(present_, settings_.range); }

void ContentCheck::expect(std::span<const WorkerResult> results) {
  // The filling is drawn again: the same stream gives the same keys.
  const auto draw = [this](auto keys) {
    while (expected_ < settings_.elements) {
      auto& present = present_[keys.next_key()];
      expected_ += present == 0 ? 1 : 0;
      present = 1;
    }
  };
  if (settings_.erand48) {
    draw(Erand48Keys(settings_, 0));
  } else {
    draw(FastKeys(settings_, 0));
  }
  for (const auto& result : results) {
    if (result.outstanding == kNoKey) continue;
    present_[result.outstanding] = 1;
    ++expected_;
  }
}

void ContentCheck::found(std::int64_t key) noexcept {
  if (key < 0 || key >= std::int64_t{settings_.range} || present_[key] != 1) {
    ++foreign_;
  } else {
    present_[key] = 2;
  }
}

Check ContentCheck::conclude(std::uint64_t elements, std::span<const WorkerResult> results) const noexcept {
  for (const auto& result : results)
    if (result.updates_lost != 0) return {false, "a removal did not find the key that its thread had inserted"};
  if (foreign_ != 0) return {false, "the set holds keys that nobody left there"};
  if (elements != expected_) return {false, "the set lacks keys: its size is not the initial one plus net inserts"};
  return {true, ""};
}

bool report(Recorder& recorder, std::span<const WorkerResult> results, const Findings& findings) {
  WorkerResult sum;
  for (const auto& result : results) {
    sum.operations += result.operations;
    sum.counters += result.counters;
  }
  const Team& team = findings.team;
  const auto rate = team.rate(sum.operations);
  auto& line = recorder.iteration(0)
                   .field("elapsed_s", team.elapsed_s())
                   .field("operations", sum.operations)
                   .field("ops_per_s", rate.per_s())
                   .field("thread_cpu_s", team.thread_cpu_s());
  if (findings.live_bytes) line.field("live_bytes", *findings.live_bytes);
  if (const auto delay_s = team.run_delay_s()) line.field("run_delay_s", *delay_s);
  team.add_to(line, rate);
  recorder.add_tm(sum.counters, findings.tm);
  recorder.write();
  team.record_slices(recorder);
  recorder.abort_histogram(sum.counters, findings.tm);

  Check check = findings.check;
  if (check.verified && findings.live_blocks_delta != 0)
    check = {false, "the allocator's live blocks and the structure's nodes differ in number"};
  recorder.end(check.verified, check.message, findings.live_blocks_delta);
  return check.verified;
}

}  // namespace loam::workloads::intset
