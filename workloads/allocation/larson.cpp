// larson: a server whose threads come and go while its blocks stay.
//   Source Larson and Krishnan, "Memory allocation for long-running server applications", ISMM 1998.
//   Each thread has an array of blocks, filled by the main thread. It frees a random one and allocates another of
//   random size in its place. After `round` such replacements it ends, and a fresh thread inherits the array: it frees
//   what threads allocated that are gone, by default in one of ten replacements. Metric: replacements per second.
//   The team's thread makes its successors one after another and waits for each: at any time `threads` of them run, on
//   the processors of the team. Making and ending threads, and what the allocator does then, is in the timed part; so
//   is what the kernel lets them wait for one another on their processor, which is told apart (`handover_delay_s`) from
//   waiting for anybody else.
#include "runtime/base/check.hpp"
#include "runtime/base/random.hpp"
#include "workloads/allocation/shared/allocation.hpp"
#include "workloads/harness/run_delay.hpp"

#include <pthread.h>
#include <algorithm>

namespace loam::workloads::allocation {
namespace {

constexpr std::uint64_t kOperations = 10'000'000;

constexpr std::string_view kMisaligned[] = {"refused", "counted"};

constexpr ParameterSpec kParameters[] = {
    size_parameter("size_min", 8, "bytes of the smallest block"),
    size_parameter("size_max", 1000, "bytes of the largest block; all sizes in between are as likely"),
    ParameterSpec::integer("blocks", 5000, 1, 1 << 22, "1", "blocks that a thread holds"),
    ParameterSpec::integer("round", 50'000, 1, std::int64_t{1} << 40, "1",
                           "replacements by one thread, before another inherits its blocks"),
    ParameterSpec::choice(
        "misaligned", kMisaligned,
        "blocks that are not aligned for the largest type that fits into them, as ISO C asks: the run "
        "fails, or has their number"),
    kDuration,
    operations_parameter("replacements per thread of the team, without warm-up; 0: 10000000, or use duration_ms"),
};

constexpr auto kOwnMetrics =
    joined(kMetrics, {{"handover_delay_s", "s", MetricSpec::Better::neither, MetricSpec::Kind::time},
                      {"threads_made", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
                      {"misaligned", "1", MetricSpec::Better::lower, MetricSpec::Kind::count}});

struct Settings {
  explicit Settings(const ParameterValues& values)
      : length(values, kOperations),
        sizes(values),
        blocks(static_cast<std::uint32_t>(values.integer("blocks"))),
        round(static_cast<std::uint64_t>(values.integer("round"))),
        misaligned_fail(values.choice("misaligned") == "refused") {}

  Length length;
  EvenSizes sizes;
  std::uint32_t blocks;
  std::uint64_t round;
  bool misaligned_fail;
};

// What a thread leaves to its successor.
struct alignas(platform::kApartBytes) Heritage {
  std::span<Held> blocks;
  base::Random random{0};
  Ledger* ledger = nullptr;
  OtherThreads used;            // by the threads before
  std::uint64_t waited_ns = 0;  // by them, but for their makers
  std::uint64_t threads = 0;
};

struct Round {
  const Settings& settings;
  Heritage& heritage;
  const std::atomic<Phase>& now;
  const Phase phase;
  std::uint64_t limit;
  Pace& pace;
  std::uint64_t replaced = 0;
};

[[gnu::noinline]] void replace(Round& round) {
  const Settings& settings = round.settings;
  const auto blocks = round.heritage.blocks;
  Ledger& ledger = *round.heritage.ledger;
  base::Random random = round.heritage.random;
  std::uint64_t replaced = 0;
  for (; replaced < round.limit && in(round.now, round.phase); ++replaced) {
    const std::uint64_t draw = random();
    Held& held = blocks[base::scale_to(static_cast<std::uint32_t>(draw >> 32), settings.blocks)];
    ledger.release(held);
    held = ledger.allocate(settings.sizes.of(static_cast<std::uint32_t>(draw)));
  }
  round.heritage.random = random;
  round.replaced = replaced;
}

void* thread_of_a_round(void* argument) {
  auto& round = *static_cast<Round*>(argument);
  const auto behind_its_maker = this_thread_run_delay_ns();
  if (round.phase == Phase::timed) {
    // Valgrind decides in each thread on its own what it counts: in this one nothing, unless told here.
    loam_counted_work([](void* context, Pace&) { replace(*static_cast<Round*>(context)); }, &round, round.pace);
  } else {
    replace(round);
  }
  const auto waited = this_thread_run_delay_ns();
  round.heritage.used += {platform::thread_cpu_ns(), waited, behind_its_maker};
  if (waited && behind_its_maker) round.heritage.waited_ns += *waited - *behind_its_maker;
  return nullptr;
}

// returns how many were replaced by all threads of the chain
std::uint64_t operate(const Settings& settings, Heritage& heritage, const std::atomic<Phase>& now, Pace& pace) {
  std::uint64_t replaced = 0;
  pace.waits_are(heritage.waited_ns);
  const auto before = this_thread_run_delay_ns();
  // A round that begins as the phase ends replaces nothing: the count stands still, so the pace has to look up itself.
  while (pace.goes_on_idle(replaced)) {
    Round round{settings, heritage, now, pace.phase(), std::min(settings.round, pace.limit() - replaced), pace};
    pthread_t thread;
    const int failure = ::pthread_create(&thread, nullptr, thread_of_a_round, &round);
    LOAM_CHECK(failure == 0, "a thread cannot be made: {}", std::string_view(std::strerror(failure)));
    ::pthread_join(thread, nullptr);
    replaced += round.replaced;
    ++heritage.threads;
  }
  // It sleeps until a thread that it made has ended, and then waits until that thread has left the processor.
  const auto after = this_thread_run_delay_ns();
  heritage.used += {0, 0, before && after ? std::optional(*after - *before) : std::nullopt};
  return replaced;
}

bool run(const Options& options, Recorder& recorder) {
  const Settings settings(options.parameters);
  const auto ledgers = open_ledgers(options.threads);
  const PageArray<Held> blocks(std::size_t{options.threads} * settings.blocks, "the blocks of larson");
  const PageArray<Heritage> heritages(options.threads, "the threads of larson");
  for (unsigned i = 0; i < options.threads; ++i) {
    Heritage& heritage = heritages[i];
    heritage = {blocks.part(i, settings.blocks), base::Random(options.seed, i), &ledgers[i], {}, 0, 0};
    for (Held& held : heritage.blocks) held = ledgers[i].allocate(settings.sizes.drawn(heritage.random));
  }

  Team team(options, settings.length.duration_ms);
  auto body = [&](Team::Member& member) {
    Heritage& heritage = heritages[member.index()];
    const auto chain = [&](Pace& pace) { return operate(settings, heritage, member.phase(), pace); };
    work(member, *heritage.ledger, settings.length.operations, chain, [&] {
      heritage.used = {};
      heritage.threads = 0;
    });
  };
  team.run(body);

  const auto live = live_bytes(ledgers);
  OtherThreads used;
  std::uint64_t threads = 0;
  for (const Heritage& heritage : heritages.span()) {
    for (const Held& held : heritage.blocks) heritage.ledger->release(held);
    used += heritage.used;
    threads += heritage.threads;
  }
  Totals totals(ledgers);
  auto& line = open_report(recorder, team, totals, used)
                   .field("live_bytes", live)
                   .field("threads_made", threads)
                   .field("misaligned", totals.misaligned);
  if (!settings.misaligned_fail) totals.misaligned = 0;
  if (used.handover_ns) line.field("handover_delay_s", static_cast<double>(*used.handover_ns) * kSecondsPerNs);
  write_report(recorder, team);
  return close_report(recorder, totals);
}

const base::Registration<Workload> registration{
    Workload{.name = "larson",
             .summary = "random replacement of blocks that threads inherit from threads",
             .kinds = {SyncKind::none},
             .parameters = kParameters,
             .metrics = kOwnMetrics,
             .check = check_sizes,
             .run = run}};

}  // namespace
}  // namespace loam::workloads::allocation
