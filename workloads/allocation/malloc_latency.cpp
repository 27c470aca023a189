// malloc-latency: how long single calls of malloc and free take, and the longest of them.
//   Each thread holds a window of blocks. Again and again it frees a random one and allocates another in its place, of
//   a size that is small mostly, up to 16 KiB in 5 of 100 and up to 1 MiB in 2 of 10000 blocks. Of the blocks that are
//   to be freed, one half is left at an exchange for what another thread has left there (exchange.hpp).
//   Metrics: quantiles of the time of one call, over all threads, and the longest call. Calls during which the kernel
//   let another thread run are counted as `preempted` instead (call_times.hpp).
//   Timed is one call in four, at random: reading the clock twice takes about as long as a call, and if each were timed
//   most of the run would be the clock. So a pause that comes once in a run is seen in one run of four.
//   The clock's own cost is part of every time: clock_cost_ns is the median time of no call at all, and nothing is
//   subtracted. clock_step_ns: times are no finer than that. No call at all is timed as often as each function, and
//   clock_max_ns is the longest such time: what interrupts and the hypervisor make of 20 ns. A longest call that is no
//   longer says nothing of the allocator.
//   Why so few large blocks: they are fewer than one call of 1000, so that malloc_p999_ns is of the rare ways through
//   malloc for small blocks, as far as these are slower than the large ones' way; the longest call may be of either.
//   Caveats: the tag of a block is written between the calls, so the page faults of fresh memory are in no call's time;
//   and it is read before the block is freed, so free() finds the block in the cache.
#include "workloads/allocation/shared/allocation.hpp"
#include "workloads/allocation/shared/call_times.hpp"
#include "workloads/allocation/shared/exchange.hpp"

namespace loam::workloads::allocation {
namespace {

constexpr std::uint64_t kOperations = 4'500'000;

constexpr ParameterSpec kParameters[] = {
    ParameterSpec::integer("window", 4000, 1, 1 << 20, "1", "blocks that a thread holds"),
    ParameterSpec::integer("medium_percent", 5, 0, 100, "%", "share of blocks of 1000 to 16384 bytes"),
    ParameterSpec::integer("large_per_10000", 2, 0, 10000, "1", "of 10000 blocks those of 64 KiB to 1 MiB"),
    ParameterSpec::integer("exchanged_percent", 50, 0, 100, "%",
                           "share of blocks that are left for another thread to free"),
    ParameterSpec::integer("timed_one_in", 4, 1, 1 << 16, "1", "one in how many calls is timed, at random"),
    kDuration,
    operations_parameter("replacements per thread, without warm-up; 0: 4500000, or use duration_ms"),
};

constexpr MetricSpec time_of_call(std::string_view name) {
  return {name, "ns", MetricSpec::Better::lower, MetricSpec::Kind::time};
}
constexpr MetricSpec count_of_calls(std::string_view name) {
  return {name, "1", MetricSpec::Better::neither, MetricSpec::Kind::count};
}

constexpr auto kOwnMetrics = joined({time_of_call("malloc_p99_ns"),
                                     time_of_call("malloc_p50_ns"),
                                     time_of_call("malloc_p999_ns"),
                                     time_of_call("malloc_max_ns"),
                                     time_of_call("free_p50_ns"),
                                     time_of_call("free_p99_ns"),
                                     time_of_call("free_p999_ns"),
                                     time_of_call("free_max_ns"),
                                     count_of_calls("timed_calls"),
                                     count_of_calls("preempted"),
                                     kFreedRemotely,
                                     {"clock_cost_ns", "ns", MetricSpec::Better::neither, MetricSpec::Kind::time},
                                     {"clock_max_ns", "ns", MetricSpec::Better::neither, MetricSpec::Kind::time},
                                     {"clock_step_ns", "ns", MetricSpec::Better::neither, MetricSpec::Kind::time}},
                                    kMetrics);

struct Settings {
  explicit Settings(const ParameterValues& values)
      : length(values, kOperations),
        window(static_cast<std::uint32_t>(values.integer("window"))),
        medium_below(static_cast<std::uint32_t>(values.integer("medium_percent") * (kSizeDraws / 100))),
        large_below(static_cast<std::uint32_t>(values.integer("large_per_10000"))),
        exchanged_percent(static_cast<std::uint32_t>(values.integer("exchanged_percent"))),
        timed_one_in(static_cast<std::uint32_t>(values.integer("timed_one_in"))) {}

  std::size_t size(base::Random& random) const noexcept {
    const std::uint32_t draw = random.below(kSizeDraws);
    // Large ones are taken from what would be small.
    const auto& sizes = draw < medium_below ? medium : draw >= kSizeDraws - large_below ? large : small;
    return sizes.drawn(random);
  }

  static constexpr std::uint32_t kSizeDraws = 10000;

  Length length;
  std::uint32_t window, medium_below, large_below, exchanged_percent, timed_one_in;
  SkewedSizes small{8, 1000}, medium{1000, 16384}, large{65536, kSizeMax};
};

struct Times {
  CallTimes malloc, free, nothing;
};

constinit Exchange<Held> exchange;

// One thread. The places of its window point to its blocks, so that a block can be exchanged with its bookkeeping.
class Worker {
 public:
  Worker(const Settings& settings, const TickClock& clock, Ledger& ledger, Times& times, std::span<Held*> window,
         std::span<Held> blocks, std::uint64_t seed, unsigned thread)
      : settings_(settings),
        ledger_(ledger),
        times_(times),
        window_(window),
        random_(seed, thread),
        turn_(exchange.first_turn(thread)),
        timer_(clock) {
    for (std::size_t i = 0; i < blocks.size(); ++i) *(window[i] = &blocks[i]) = ledger.allocate(settings.size(random_));
  }

  [[gnu::noinline]] std::uint64_t replace(Pace& pace) {
    std::uint64_t replaced = 0;
    for (; pace.goes_on(replaced); ++replaced) {
      Held*& held = window_[random_.below(settings_.window)];
      if (random_.below(100) < settings_.exchanged_percent) held = exchange.leave(turn_++, held);
      release(*held);
      *held = allocate(settings_.size(random_));
      if (is_timed()) timer_.time(times_.nothing, [] {});
    }
    return replaced;
  }

  void forget_times() noexcept { times_ = {}; }

 private:
  Held allocate(std::size_t size) noexcept {
    if (!is_timed()) return ledger_.allocate(size);
    void* block;
    timer_.time(times_.malloc, [&] { block = std::malloc(size); });
    return ledger_.tagged(block, size);
  }
  void release(const Held& held) noexcept {
    if (!is_timed()) return ledger_.release(held);
    if (ledger_.checked(held)) timer_.time(times_.free, [&] { std::free(held.block); });
  }
  bool is_timed() noexcept { return random_.below(settings_.timed_one_in) == 0; }

  const Settings& settings_;
  Ledger& ledger_;
  Times& times_;
  const std::span<Held*> window_;
  base::Random random_;
  std::uint64_t turn_;
  CallTimer<> timer_;
};

// What is measured where nothing is called.
double clock_cost_ns(const TickClock& clock) noexcept {
  constexpr int kTimes = 1000;
  CallTimer<> timer(clock);
  CallTimes none;
  for (int i = 0; i < kTimes; ++i) timer.time(none, [] {});
  return clock.ns(none.all.quantile(0.5));
}

struct QuantileNames {
  std::string_view p50, p99, p999, max;
};

// What was never timed is not known.
void add_times(base::JsonLine& line, const TickClock& clock, const LogHistogram& times, const QuantileNames& names) {
  if (times.count() == 0) return;
  line.field(names.p50, clock.ns(times.quantile(0.5)))
      .field(names.p99, clock.ns(times.quantile(0.99)))
      .field(names.p999, clock.ns(times.quantile(0.999)))
      .field(names.max, clock.ns(static_cast<double>(times.max())));
}

bool run(const Options& options, Recorder& recorder) {
  const Settings settings(options.parameters);
  const TickClock clock = TickClock::calibrated();
  const auto ledgers = open_ledgers(options.threads);
  const std::size_t held = std::size_t{options.threads} * settings.window;
  const PageArray<Held> blocks(held + exchange.kPlaces, "the blocks of malloc-latency");
  const PageArray<Held*> windows(held, "the windows of malloc-latency");
  const PageArray<Times> times(options.threads, "the times of malloc-latency");
  exchange.open(blocks.span().last<exchange.kPlaces>());

  Team team(options, settings.length.duration_ms);
  auto body = [&](Team::Member& member) {
    const unsigned thread = member.index();
    Worker worker(settings, clock, ledgers[thread], times[thread], windows.part(thread, settings.window),
                  blocks.part(thread, settings.window), options.seed, thread);
    const auto replace = [&](Pace& pace) { return worker.replace(pace); };
    work(member, ledgers[thread], settings.length.operations, replace, [&] { worker.forget_times(); });
  };
  team.run(body);

  const std::uint64_t live = live_bytes(ledgers), freed_remotely = Totals(ledgers).freed_remotely;
  for (const Held& left : blocks.span()) ledgers[0].release(left);
  Times& sum = times[0];
  for (const Times& other : times.span().subspan(1)) {
    sum.malloc += other.malloc;
    sum.free += other.free;
    sum.nothing += other.nothing;
  }

  const Totals totals(ledgers);
  auto& line = open_report(recorder, team, totals);
  add_times(line, clock, sum.malloc.all, {"malloc_p50_ns", "malloc_p99_ns", "malloc_p999_ns", "malloc_max_ns"});
  add_times(line, clock, sum.free.all, {"free_p50_ns", "free_p99_ns", "free_p999_ns", "free_max_ns"});
  if (sum.nothing.all.count() != 0) line.field("clock_max_ns", clock.ns(static_cast<double>(sum.nothing.all.max())));
  line.field("timed_calls", sum.malloc.all.count() + sum.free.all.count())
      .field("preempted", sum.malloc.preempted + sum.free.preempted)
      .field("freed_remotely", freed_remotely)
      .field("live_bytes", live)
      .field("clock_cost_ns", clock_cost_ns(clock))
      .field("clock_step_ns", clock.step_ns);
  write_report(recorder, team);
  return close_report(recorder, totals);
}

const base::Registration<Workload> registration{
    Workload{.name = "malloc-latency",
             .summary = "the time of single calls of malloc and free, of skewed sizes, half of them exchanged",
             .kinds = {SyncKind::none},
             .parameters = kParameters,
             .metrics = kOwnMetrics,
             .check = nullptr,
             .run = run}};

}  // namespace
}  // namespace loam::workloads::allocation
