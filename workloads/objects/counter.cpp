// counter: every thread adds one to a shared counter and gets what it was before, over any synchronisation.
//   Source: the fetch-and-add of Fatourou, Kallimanis: "Revisiting the combining synchronization technique", PPoPP 2012:
//   the shortest operation that there is, so that nothing but the synchronisation is measured. It allocates nothing.
//   in_flight  a thread hands over so many requests before it takes the answer to the first, of a scheme with a server; each
//   ticket is a block of the process's allocator.
//   Check: each thread's numbers rise (one in flight), all together are 0, 1, 2, ... (by their sum), and the last one is in
//   the counter.
#include "runtime/base/format.hpp"
#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/compiler.hpp"
#include "workloads/harness/joined.hpp"
#include "workloads/objects/shared/object.hpp"

#include LOAM_SYNC_HEADER

#include <array>
#include <optional>

namespace loam::workloads {
namespace {

using namespace objects;

// Of a scheme with a server: it has somebody who executes while the client goes on.
template <class SyncType>
concept Submits = requires(std::int64_t (*operation)(structures::PlainAccess&)) { SyncType::submit(operation); };

// The counter of whatever lets operations run one at a time.
template <class SyncType>
class alignas(platform::kApartBytes) SyncedCounter : public Counted<SyncType> {
 public:
  std::int64_t add() {
    return SyncType::update([&](auto& access) { return add_one(access); });
  }
  // In flight: a ticket.
  auto submit()
    requires Submits<SyncType>
  {
    return SyncType::submit([&](auto& access) { return add_one(access); });
  }
  // At rest.
  std::int64_t count() const noexcept { return count_; }

 private:
  template <class Access>
  std::int64_t add_one(Access& access) {
    this->note_turn();
    const std::int64_t before = access.read(count_);
    access.write(count_, before + 1);
    return before;
  }

  std::int64_t count_ = 0;  // beside the turns
};

struct CounterWork : Work {
  std::uint64_t added, sum;    // over all phases; sum: of the numbers that it got, modulo 2^64
  std::uint64_t next;          // at least, of the next number
  std::uint64_t out_of_order;  // always a mistake

  void got(std::int64_t number) noexcept {
    if (static_cast<std::uint64_t>(number) < next) ++out_of_order;
    next = static_cast<std::uint64_t>(number) + 1;
    got_in_any_order(number);
  }
  void got_in_any_order(std::int64_t number) noexcept {
    ++added;
    sum += static_cast<std::uint64_t>(number);
  }
};

constexpr LatencyNames kLatencies[] = {{"add_p50_ns", "add_p99_ns", "add_max_ns"}};
constexpr auto kMetrics = metrics_of(kLatencies);

constexpr unsigned kInFlightMax = 32;
constexpr ParameterSpec kOwnParameters[] = {
    ParameterSpec::integer(
        "in_flight", 1, 1, kInFlightMax, "1",
        "requests that a thread has handed over at a time; more than one needs a scheme with a server"),
};
constexpr auto kParameters = joined(kOwnParameters, kObjectParameters);

unsigned in_flight_of(const ParameterValues& values) { return static_cast<unsigned>(values.integer("in_flight")); }

// One copy (noipa) for both phases: the warm-up warms the code that is timed. returns how many it did
template <class Counter>
LOAM_CALLED_AS_WRITTEN std::uint64_t operate(Counter& counter, const Settings& settings, CounterWork& worker,
                                             base::Random& random, Pace& pace) {
  std::uint64_t operations = 0, left = settings.latency_every + 1;
  for (std::uint64_t until; (until = pace.goes_on_until(operations)) > operations;)
    for (; operations < until; ++operations) {
      std::int64_t number = 0;
      timed(left, settings.latency_every, worker.ticks[0], [&] { number = counter.add(); });
      worker.got(number);
      think(random, settings.think);
    }
  return operations;
}

// The same with several requests in flight. Answers may come in any order, and none is timed.
template <class Counter>
LOAM_CALLED_AS_WRITTEN std::uint64_t operate_in_flight(Counter& counter, const Settings& settings, unsigned in_flight,
                                                       CounterWork& worker, base::Random& random, Pace& pace) {
  using Ticket = decltype(counter.submit());
  std::array<std::optional<Ticket>, kInFlightMax> tickets;
  const auto take = [&worker](std::optional<Ticket>& ticket) {
    if (!ticket) return;
    worker.got_in_any_order(ticket->get());
    ticket.reset();
  };
  std::uint64_t operations = 0;
  unsigned oldest = 0;
  for (std::uint64_t until; (until = pace.goes_on_until(operations)) > operations;)
    for (; operations < until; ++operations) {
      take(tickets[oldest]);
      tickets[oldest].emplace(counter.submit());
      oldest = oldest + 1 == in_flight ? 0 : oldest + 1;
      think(random, settings.think);
    }
  for (auto& ticket : tickets) take(ticket);
  return operations;
}

// [[maybe_unused]]: the synchronisation may bring no counter.
[[maybe_unused]] std::string_view mistake_of(std::span<CounterWork> workers, std::int64_t count) {
  std::uint64_t added = 0, sum = 0;
  for (const CounterWork& worker : workers) {
    if (worker.out_of_order != 0) return "a thread's numbers did not rise";
    added += worker.added;
    sum += worker.sum;
  }
  if (added != static_cast<std::uint64_t>(count)) return "additions were lost or came twice: the counter is wrong";
  // 0 + 1 + ... + (added - 1), modulo 2^64: the even factor is halved.
  const std::uint64_t all = added % 2 == 0 ? added / 2 * (added - 1) : (added - 1) / 2 * added;
  if (sum != all) return "two threads got the same number: their sum is wrong";
  return "";
}

template <class SyncType, class Counter>
bool run_counter(const Options& options, Recorder& recorder) {
  const Settings settings(options);
  [[maybe_unused]] const unsigned in_flight = in_flight_of(options.parameters);
  const Workers<CounterWork> workers(options.threads);
  const std::int64_t blocks_before = Counter::live_blocks();
  Counter counter;
  Team team(options, settings.duration_ms);
  drive<SyncType>(team, options, settings, workers,
                  [&](CounterWork& worker, unsigned, base::Random& random, Pace& pace) {
                    if constexpr (requires { counter.submit(); }) {
                      if (in_flight > 1) return operate_in_flight(counter, settings, in_flight, worker, random, pace);
                    }
                    return operate(counter, settings, worker, random, pace);
                  });
  const auto records = tm_records<SyncType>();
  SyncType::quiesce();
  return report(recorder, workers.all(),
                {.team = team,
                 .settings = settings,
                 .latencies = kLatencies,
                 .tm = records,
                 .turns = counter.turns(),
                 .pauses = pauses_of<SyncType>(),
                 .mistake = mistake_of(workers.all(), counter.count()),
                 .live_blocks_delta = Counter::live_blocks() - blocks_before,
                 .live_bytes = 0});
}

template <class SyncType>
constexpr bool kBringsCounter = requires { typename SyncType::Counter; };

void check(const ParameterValues& values) {
  if (in_flight_of(values) > 1 && !Submits<Sync>) {
    char text[16];
    reject("-p in_flight", base::format_to(text, "{}", in_flight_of(values)),
           "this synchronisation has executed a request when it returns",
           "a scheme with a server has several in flight");
  }
}

template <class SyncType>
bool run_on(const Options& options, Recorder& recorder) {
  if constexpr (kBringsCounter<SyncType>)
    return run_counter<SyncType, typename SyncType::Counter>(options, recorder);
  else if constexpr (kBringsObjects<SyncType>)
    return false;  // it brings others: kinds() does not offer this one
  else
    return run_counter<SyncType, SyncedCounter<SyncType>>(options, recorder);
}

const base::Registration<Workload> registration{Workload{.name = "counter",
                                                         .summary = "every thread adds to one shared counter",
                                                         .kinds = kinds(kBringsCounter<Sync>),
                                                         .parameters = kParameters,
                                                         .metrics = kMetrics,
                                                         .check = check,
                                                         .run = [](const Options& options, Recorder& recorder) {
                                                           return options.blame ? run_on<BlameSync>(options, recorder)
                                                                                : run_on<Sync>(options, recorder);
                                                         }}};

}  // namespace
}  // namespace loam::workloads
