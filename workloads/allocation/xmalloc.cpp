// xmalloc: blocks that one thread allocates and another frees.
//   Source: xmalloc-test; Lever and Boreham, "malloc() performance in a multithreaded Linux environment", USENIX 2000.
//   Producers, one half of the threads (rounded up), allocate batches of blocks of random sizes and queue them;
//   consumers, the other half, free them. A single thread fills the queue and empties it, in turn.
//   Metric: blocks per second, counted when they are freed. freed_remotely: those that another thread had allocated,
//   with two or more threads all.
//   Memory flows one way: what the consumers' side collects has to find its way back. The queue is short, so that the
//   slower half sets the pace; a batch costs its lock four times.
#include "runtime/base/random.hpp"
#include "runtime/sync/backoff.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "workloads/allocation/shared/allocation.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace loam::workloads::allocation {
namespace {

constexpr std::uint64_t kOperations = 1'500'000;
constexpr std::size_t kQueueMax = 1024;

constexpr ParameterSpec kParameters[] = {
    size_parameter("size_min", 8, "bytes of the smallest block"),
    size_parameter("size_max", 1024, "bytes of the largest block; all sizes in between are as likely"),
    ParameterSpec::integer("batch", 64, 1, 1 << 16, "1", "blocks that are passed on at a time"),
    ParameterSpec::integer("queue", 16, 1, kQueueMax, "1", "batches that there are, full or empty"),
    kDuration,
    operations_parameter("blocks, times the number of threads, without warm-up; 0: 1500000, or use duration_ms"),
};

constexpr auto kOwnMetrics = joined(kMetrics, {kFreedRemotely});

struct Settings {
  explicit Settings(const ParameterValues& values)
      : length(values, kOperations),
        sizes(values),
        batch(static_cast<std::size_t>(values.integer("batch"))),
        queue(static_cast<std::size_t>(values.integer("queue"))) {}

  Length length;
  EvenSizes sizes;
  std::size_t batch, queue;
};

struct Batch {
  std::span<Held> blocks;  // room
  std::size_t count = 0;
};

// Full batches, first in, first out, and empty ones. The lock orders what is written into a batch.
// Who finds nothing asks again and again, and the lock is not fair: without the counts, which are read before the lock is
// asked for, a dozen idle threads keep those that have work away from it.
class Queue {
 public:
  void open(std::span<Batch> batches, unsigned producers) noexcept {
    for (Batch& batch : batches) put(empties_, [&](std::size_t i) { empty_[i] = &batch; });
    producers_.store(producers, std::memory_order_relaxed);  // the threads start after this
  }
  // Null if there is none.
  Batch* take_empty() noexcept {
    if (is_none(empties_)) return nullptr;
    const std::scoped_lock guard(lock_);
    return is_none(empties_) ? nullptr : empty_[less_one(empties_)];
  }
  void put_full(Batch* batch) noexcept {
    const std::scoped_lock guard(lock_);
    put(fulls_, [&](std::size_t i) { full_[(first_ + i) % kQueueMax] = batch; });
  }
  Batch* take_full() noexcept {
    if (is_none(fulls_)) return nullptr;
    const std::scoped_lock guard(lock_);
    if (is_none(fulls_)) return nullptr;
    less_one(fulls_);
    return full_[first_++ % kQueueMax];
  }
  void put_empty(Batch* batch) noexcept {
    const std::scoped_lock guard(lock_);
    put(empties_, [&](std::size_t i) { empty_[i] = batch; });
  }
  // xmalloc.A, release: the producer's last batch is counted before. Pairs with the acquire in drained().
  void producer_ends() noexcept { producers_.fetch_sub(1, std::memory_order_release); }
  // No full batch will come any more.
  bool drained() const noexcept {
    return producers_.load(std::memory_order_acquire) == 0 && is_none(fulls_);  // xmalloc.A: the reading side
  }

 private:
  // Counts are written under the lock, which orders what they count; relaxed.
  using Count = std::atomic<std::size_t>;
  static bool is_none(const Count& count) noexcept { return count.load(std::memory_order_relaxed) == 0; }
  static std::size_t less_one(Count& count) noexcept {
    const std::size_t less = count.load(std::memory_order_relaxed) - 1;
    count.store(less, std::memory_order_relaxed);
    return less;
  }
  // write: gets the number of the new one
  template <class Write>
  static void put(Count& count, Write write) noexcept {
    const std::size_t old = count.load(std::memory_order_relaxed);
    write(old);
    count.store(old + 1, std::memory_order_relaxed);
  }

  alignas(platform::kApartBytes) sync::SpinLock lock_;
  std::atomic<unsigned> producers_{0};
  std::size_t first_ = 0;
  Count fulls_{0}, empties_{0};
  Batch* full_[kQueueMax] = {};
  Batch* empty_[kQueueMax] = {};
};
constinit Queue queue;

// One thread, with what it needs in its loops.
struct Worker {
  // returns how many blocks were queued: at most `limit`, 0 if no batch was empty
  [[gnu::noinline]] std::uint64_t produce(std::uint64_t limit) {
    if (limit == 0) return 0;
    Batch* const batch = queue.take_empty();
    if (batch == nullptr) return 0;
    const std::uint64_t count = std::min<std::uint64_t>(batch->blocks.size(), limit);
    for (Held& held : batch->blocks.first(count)) held = ledger.allocate(settings.sizes.drawn(random));
    batch->count = count;
    queue.put_full(batch);
    return count;
  }
  // returns how many blocks were freed, 0 if no batch was full
  [[gnu::noinline]] std::uint64_t consume() {
    Batch* const batch = queue.take_full();
    if (batch == nullptr) return 0;
    const std::uint64_t count = batch->count;
    for (const Held& held : batch->blocks.first(count)) ledger.release(held);
    queue.put_empty(batch);
    return count;
  }

  void run_producer(Pace& pace) {
    sync::Backoff backoff;
    std::uint64_t made = 0, count = 1;
    while (count == 0 ? pace.goes_on_idle(made) : pace.goes_on(made)) {
      count = produce(pace.limit() - made);
      made += count;
      count == 0 ? backoff.wait() : backoff.reset();
    }
    if (pace.phase() == Phase::timed) queue.producer_ends();
  }
  // returns how many blocks were freed; in the timed part until nothing is left
  std::uint64_t run_consumer(Pace& pace) {
    sync::Backoff backoff;
    std::uint64_t freed = 0, count = 1;
    while ((count == 0 ? pace.goes_on_idle(freed) : pace.goes_on(freed)) ||
           (pace.phase() == Phase::timed && !queue.drained())) {
      count = consume();
      freed += count;
      count == 0 ? backoff.wait() : backoff.reset();
    }
    return freed;
  }
  std::uint64_t run_both(Pace& pace) {
    std::uint64_t made = 0, freed = 0;
    while (pace.goes_on(made)) {
      while (const std::uint64_t count = produce(pace.limit() - made)) made += count;
      while (const std::uint64_t count = consume()) freed += count;
    }
    return freed;
  }

  const Settings& settings;
  Ledger& ledger;
  base::Random random;
};

// What producer `index` of `producers` makes so that all together make `total`.
std::uint64_t share(std::uint64_t total, unsigned producers, unsigned index) {
  return total / producers + (index < total % producers ? 1 : 0);
}

bool run(const Options& options, Recorder& recorder) {
  const Settings settings(options.parameters);
  const auto ledgers = open_ledgers(options.threads);
  const unsigned producers = (options.threads + 1) / 2;
  const PageArray<Held> room(settings.queue * settings.batch, "the blocks of xmalloc");
  const PageArray<Batch> batches(settings.queue, "the batches of xmalloc");
  for (std::size_t i = 0; i < settings.queue; ++i) batches[i].blocks = room.part(i, settings.batch);
  queue.open(batches.span(), producers);

  Team team(options, settings.length.duration_ms);
  const bool limited = settings.length.duration_ms == 0;
  auto body = [&](Team::Member& member) {
    const unsigned index = member.index();
    const std::uint64_t limit =
        limited ? share(settings.length.operations * options.threads, producers, index) : ~std::uint64_t{0};
    Worker worker{settings, ledgers[index], base::Random(options.seed, index)};
    work(member, worker.ledger, limit, [&](Pace& pace) -> std::uint64_t {
      if (options.threads == 1) return worker.run_both(pace);
      if (index >= producers) return worker.run_consumer(pace);
      worker.run_producer(pace);
      return 0;
    });
  };
  team.run(body);
  const Totals totals(ledgers);
  return report(recorder, team, totals, {{"freed_remotely", totals.freed_remotely}});
}

const base::Registration<Workload> registration{
    Workload{.name = "xmalloc",
             .summary = "remote frees: producers pass batches of blocks to consumers",
             .kinds = {SyncKind::none},
             .parameters = kParameters,
             .metrics = kOwnMetrics,
             .check = check_sizes,
             .run = run}};

}  // namespace
}  // namespace loam::workloads::allocation
