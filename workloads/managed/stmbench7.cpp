// stmbench7: a tree of assemblies of parts, six indexes, and 45 operations from ten objects to all of them.
//   Source  Guerraoui, Kapalka, Vitek, "STMBench7: a benchmark for software transactional memory", EuroSys 2007. Here: the
//           ordered indexes are treaps, sets and bags are arrays, types and titles are numbers (bench7/objects.hpp).
//   An operation is one transaction. One that fails (a number that is free, a list that is empty) has written nothing and
//   counts apart. Its random numbers begin anew in each attempt, so an abort does not change what it does.
//   Verified  the whole structure, before and after.
#include "runtime/platform/machine.hpp"
#include "workloads/harness/workload.hpp"
#include "workloads/managed/bench7/catalogue.hpp"
#include "workloads/managed/bench7/mix.hpp"
#include "workloads/managed/bench7/verify.hpp"
#include "workloads/managed/harness/program.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace loam::workloads::managed {
namespace {

using namespace bench7;

constexpr std::string_view kMixes[] = {"read", "read-write", "write"};
constexpr double kReadShares[] = {0.9, 0.6, 0.1};
constexpr std::string_view kOn[] = {"on", "off"};
constexpr std::string_view kTexts[] = {"string", "array"};
constexpr std::string_view kDraws[] = {"random", "even"};
constexpr std::string_view kLockKinds[] = {"coarse", "medium"};
// "all", and the names of the operations.
constexpr auto kOnly = [] {
  std::array<std::string_view, kOperationCount + 1> names{"all"};
  for (std::size_t i = 0; i < kOperationCount; ++i) names[i + 1] = kOperations<PlainAccess>[i].name;
  return names;
}();

constexpr ParameterSpec kParameters[] = {
    ParameterSpec::choice("size", kSizeNames, "of the structure: big is the published one, with 100 000 atomic parts")
        .called("size\u00a0{}"),
    ParameterSpec::choice("mix", kMixes, "90, 60 or 10 % of the operations only read"),
    ParameterSpec::choice("long", kOn, "long traversals, which visit all of the structure"),
    ParameterSpec::choice("structural", kOn, "operations that add and remove parts and assemblies"),
    ParameterSpec::choice("only", kOnly, "this operation alone"),
    ParameterSpec::choice(
        "draw", kDraws,
        "random: each operation alone; even: each as often as its share of a thread's operations says, "
        "in an order by chance"),
    ParameterSpec::integer("operations", 500, 1, 1 << 30, "1", "of each thread; one is a transaction"),
    ParameterSpec::choice("texts", kTexts,
                          "string: a text is one value; array: each character is read and written by the transaction"),
    ParameterSpec::choice("locks", kLockKinds, "of gc-lock: one, or one for each level and kind of object"),
};

constexpr MetricSpec kOwnMetrics[] = {
    {"succeeded", "1", Better::neither, Kind::count},
    {"failed", "1", Better::neither, Kind::count},
    {"visited", "1", Better::neither, Kind::count},
    {"checksum", "1", Better::neither, Kind::count},
    {"sample_error", "1", Better::neither, Kind::ratio, "sample_off", "sampled"},
    {"sample_off", "1", Better::neither, Kind::count},
    {"sampled", "1", Better::neither, Kind::count},
    {"longest_ms", "ms", Better::lower, Kind::time},
    {"atomic_parts", "1", Better::neither, Kind::count},
};
constexpr auto kMetrics = joined(kSharedMetrics, kOwnMetrics);

struct Bench7Settings : bench7::Settings {
  explicit Bench7Settings(const ParameterValues& values)
      : bench7::Settings{sizes_of(values.choice("size")), values.choice("texts") == "array"},
        coarse(values.choice("locks") == "coarse"),
        even(values.choice("draw") == "even"),
        operations(static_cast<std::uint64_t>(values.integer("operations"))),
        mix(mix_of(values)) {
    has_long = values.choice("long") == "on";
  }

  static Mix mix_of(const ParameterValues& values) {
    const auto only = std::find(kOnly.begin(), kOnly.end(), values.choice("only"));
    if (only != kOnly.begin()) return Mix(static_cast<std::size_t>(only - kOnly.begin()) - 1);
    const auto name = values.choice("mix");
    const double share = kReadShares[std::find(std::begin(kMixes), std::end(kMixes), name) - std::begin(kMixes)];
    return Mix({share, values.choice("long") == "on", values.choice("structural") == "on"});
  }

  bool coarse, even, has_long;
  std::uint64_t operations;  // of each thread
  Mix mix;
};

// What a thread counts.
struct alignas(platform::kApartBytes) Tally {
  std::array<std::uint64_t, kOperationCount> succeeded{}, failed{}, longest_ns{};
  std::uint64_t checksum = 0, visited = 0;
};

class StmBench7 {
 public:
  using Settings = Bench7Settings;

  // The structure, and the logs of one traversal of it in each thread.
  static std::size_t live_bytes(const Settings& settings, unsigned threads) {
    const Sizes& sizes = settings.sizes;
    constexpr std::size_t kListBytes = sizeof(List) + sizeof(gc::Array) + kListLeast * sizeof(void*);
    constexpr std::size_t kPartBytes =
        sizeof(AtomicPart) + 2 * kListBytes + 2 * kConnections * sizeof(Connection) + 3 * sizeof(MapNode);
    const std::size_t texts =
        std::size_t{2} * sizes.composite_parts * (sizes.document_chars + 4096) + std::size_t{2} * sizes.manual_chars;
    const std::size_t assemblies = (sizes.bases() + sizes.complexes()) * (sizeof(Assembly) + 2 * kListBytes);
    const std::size_t structure = Sizes::pool_of(sizes.atomics()) * kPartBytes + texts + assemblies;
    const std::size_t walked = settings.has_long ? std::size_t{sizes.bases()} * kFanOut * sizes.atomic_parts
                                                 : std::size_t{sizes.atomics()} / 5;
    const std::size_t logs = walked * (2 + kConnections) * sizeof(gc::ReadEntry) +
                             (settings.has_long ? sizes.atomics() : sizes.atomics() / 10) * 4 *
                                 (sizeof(gc::UpdateEntry) + sizeof(gc::UndoEntry));
    const std::size_t chars = settings.arrays ? texts * 2 : 0;
    return structure + threads * (logs + chars) + (std::size_t{1} << 20);
  }

  StmBench7(Session& session, const Settings& settings, const Options& options)
      : settings_(settings),
        options_(options),
        all_(session.heap),
        locks_(settings.coarse),
        tallies_(options.threads) {}

  void build(Worker& builder) {
    base::Random random(options_.seed);
    all_.set(make_roots(builder.plain(), settings_.sizes));
    Roots roots(builder.mutator, all_.get());
    make_everything(Context<PlainAccess>{builder.plain(), roots, random, settings_});
    if (const char* const problem = verify(*all_.get(), settings_.sizes)) LOAM_FATAL("as it was built: {}", problem);
  }

  std::uint64_t work(Worker& worker, unsigned thread, Pace& pace) {
    Roots roots(worker.mutator, all_.get());
    base::Random random(options_.seed, thread + 1);
    Draws draws(settings_.mix, settings_.even, settings_.operations);
    Tally& tally = tallies_[thread];
    std::uint64_t done = 0;
    for (; pace.goes_on(done); ++done) {
      const std::size_t chosen = draws.next(random);
      const std::uint64_t began_ns = platform::monotonic_ns();
      const Ended ended = run_one(worker, roots, chosen, random);
      tally.longest_ns[chosen] = std::max(tally.longest_ns[chosen], platform::monotonic_ns() - began_ns);
      random = ended.random;
      ++(ended.outcome.failed ? tally.failed : tally.succeeded)[chosen];
      tally.visited += static_cast<std::uint64_t>(ended.outcome.result);
      tally.checksum = base::mix(tally.checksum + static_cast<std::uint64_t>(ended.outcome.result) + chosen);
    }
    return done;
  }

  const char* check(Worker&) { return verify(*all_.get(), settings_.sizes); }

  void add_to(base::JsonLine& line) {
    std::array<std::uint64_t, kCategories> drawn{};
    std::uint64_t succeeded = 0, failed = 0, visited = 0, checksum = 0, longest_ns = 0;
    for (const Tally& tally : tallies_) {
      for (std::size_t i = 0; i < kOperationCount; ++i) {
        drawn[Mix::index(kOperations<PlainAccess>[i].category)] += tally.succeeded[i] + tally.failed[i];
        succeeded += tally.succeeded[i];
        failed += tally.failed[i];
        longest_ns = std::max(longest_ns, tally.longest_ns[i]);
      }
      visited += tally.visited;
      checksum ^= tally.checksum;
    }
    const double total = static_cast<double>(succeeded + failed);
    double off = 0;
    for (std::size_t i = 0; i < kCategories; ++i)
      off = std::max(off, std::abs(static_cast<double>(drawn[i]) - total * settings_.mix.share(i)));
    constexpr double kMsPerNs = 1e-6;
    line.field("succeeded", succeeded)
        .field("failed", failed)
        .field("visited", visited)
        .field("checksum", checksum >> 12)
        .field("sample_error", off / total)
        .field("sample_off", static_cast<std::uint64_t>(off))
        .field("sampled", succeeded + failed)
        .field("longest_ms", static_cast<double>(longest_ns) * kMsPerNs)
        .field("atomic_parts", std::uint64_t{settings_.sizes.atomics()});
  }

  // Of each operation, in the order of bench7/catalogue.hpp.
  void record_more(Recorder& recorder) const {
    std::array<std::uint64_t, kOperationCount> numbers{}, succeeded{}, failed{}, longest_ns{};
    for (std::size_t i = 0; i < kOperationCount; ++i) {
      numbers[i] = i;
      for (const Tally& tally : tallies_) {
        succeeded[i] += tally.succeeded[i];
        failed[i] += tally.failed[i];
        longest_ns[i] = std::max(longest_ns[i], tally.longest_ns[i]);
      }
    }
    recorder.histogram("succeeded_of_operation", numbers, succeeded);
    recorder.histogram("failed_of_operation", numbers, failed);
    recorder.histogram("longest_ns_of_operation", numbers, longest_ns);
  }

 private:
  struct Ended {
    Outcome outcome;
    base::Random random;  // as the attempt that committed left it
  };

  Ended run_one(Worker& worker, Roots& roots, std::size_t chosen, const base::Random& random) {
    const auto body = [&](auto& tx) {
      using Access = std::remove_reference_t<decltype(tx)>;
      base::Random own = random;  // R1 each attempt draws the same numbers
      Context<Access> context{tx, roots, own, settings_};
      const Outcome outcome = kOperations<Access>[chosen].run(context);
      return Ended{outcome, own};
    };
    if constexpr (kLock) {
      const Locks::Holder holder(locks_, worker.mutator, kOperations<PlainAccess>[chosen].locks);
      return body(worker.plain());
    } else {
      return worker.atomically(body);
    }
  }

  const Settings settings_;
  const Options& options_;
  gc::Global<Everything> all_;
  Locks locks_;
  std::vector<Tally> tallies_;
};

void check(const ParameterValues& values) {
  const auto name = values.choice("only");
  if (name == "all") return;
  const auto only = std::find(kOnly.begin(), kOnly.end(), name) - kOnly.begin() - 1;
  const Category category = kOperations<PlainAccess>[only].category;
  if (is_long(category) && values.choice("long") == "off")
    reject("-p only", name, "a long traversal, with long=off", "leave long on");
}

bool run(const Options& options, Recorder& recorder) {
  refuse_unsynchronised(options);
  if constexpr (kTransactions)
    if (options.threads != 1 && !tx_settings(options).opaque)
      reject("-p opacity", "unchecked", "a doomed transaction may walk a list that never was",
             "use one thread, or opacity=checked");
  return run_program<StmBench7>(options, recorder,
                                static_cast<std::uint64_t>(options.parameters.integer("operations")));
}

const base::Registration<Workload> registration{
    Workload{.name = "stmbench7",
             .summary = "assemblies of parts with indexes: 45 operations, from ten objects to all of them",
             .kinds = {SyncKind::managed},
             .parameters = kParameters,
             .metrics = kMetrics,
             .check = check,
             .run = run}};

}  // namespace
}  // namespace loam::workloads::managed
