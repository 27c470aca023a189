#include "runtime/tm/runtime.hpp"

#include "runtime/base/check.hpp"
#include "runtime/base/points.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/platform/pages.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/tm/algorithm.hpp"
#include "runtime/tm/attempts/grace.hpp"
#include "runtime/tm/attempts/memory.hpp"
#include "runtime/tm/attempts/serial.hpp"
#include "runtime/tm/attempts/switching.hpp"
#include "runtime/tm/blame/blame.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/logs/log_space.hpp"
#include "runtime/tm/process.hpp"
#include "runtime/tm/records/tuning.hpp"

#include <mutex>

#include <pthread.h>

namespace loam::tm {

constinit Shared shared;
constinit Clock version_clock;
constinit reclaim::Domain domain;

constinit Descriptor Descriptor::nobody_{Mode::detached};
[[gnu::tls_model("initial-exec")]] thread_local constinit Descriptor* Descriptor::current_ = &Descriptor::nobody_;

namespace {

constinit sync::SpinLock setup_lock;
constinit std::atomic<bool> configured{false};
constinit std::atomic<bool> in_use{false};
constinit std::array<std::atomic<Descriptor*>, reclaim::Domain::kSlots> descriptors{};

// The calling thread's descriptors that are set aside, innermost first.
struct Aside {
  const Descriptor* descriptor;
  const Aside* around;
};
thread_local constinit const Aside* asides = nullptr;

bool is_own(unsigned slot, const Descriptor& current) noexcept {
  const Descriptor* const d = Descriptor::of_slot(slot);
  if (d == &current) return true;
  for (const Aside* aside = asides; aside != nullptr; aside = aside->around)
    if (d == aside->descriptor) return true;
  return false;
}

// Addresses of the logs of one thread, in entries. Backed as used: an attempt that reads 4000 words uses 32 KiB.
constexpr std::size_t kReadsMax = std::size_t{1} << 27;
constexpr std::size_t kWritesMax = std::size_t{1} << 24;
constexpr std::size_t kAllocatedMax = std::size_t{1} << 24;
constexpr std::size_t kHandlersMax = std::size_t{1} << 16;
// Room for the descriptor, these logs and those of any algorithm.
constexpr std::size_t kLogSpaceBytes = std::size_t{5} << 30;
// Logs of different threads start at different cache sets: five lines apart, modulo a page. The logs of one thread
// start a quarter of a page apart, because a load waits for an earlier store to the same offset of another page (4 KiB
// aliasing).
constexpr std::size_t kStaggerBytes = 5 * platform::kCacheLineBytes;
constexpr std::size_t kLogApartBytes = platform::kPageBytes / 4;

// Maps the records, unless it is done. Call with setup_lock.
void map_shared_records() noexcept {
  const Config& config = shared.config;
  if (shared.map.base == nullptr)
    shared.map = map_records(config, config.adaptive ? tuning::records_log2_max(config.records_log2) : 0);
}

void configure_locked(const Config& config) noexcept {
  check_mapping(config);
  shared.config = config;
  if (config.blame) blame::start();
  // relaxed: published with the configuration. What switching::fix() has set stays.
  const std::uint32_t kept = shared.slow_begin.load(std::memory_order_relaxed) & serial::kScales;
  shared.slow_begin.store(kept | (config.privatization != Privatization::none ? serial::kPublishes : 0),
                          std::memory_order_relaxed);
  // runtime.A: release pairs with the acquire in configure_once(): whoever sees true sees the configuration.
  configured.store(true, std::memory_order_release);
}

Descriptor& make_descriptor(unsigned slot, const Hooks& algorithm) noexcept {
  const LogSpace space(kLogSpaceBytes);
  void* const page = LogSpace::map(sizeof(Descriptor));
  LOAM_CHECK(page != nullptr, "tm: no address space for the descriptor of a thread; raise `ulimit -v`");
  auto* const d = new (page) Descriptor(Mode::idle);
  const auto offset = [slot](std::size_t log) {
    return (slot * kStaggerBytes + log * kLogApartBytes) % platform::kPageBytes;
  };
  d->slot = slot;
  d->reads.reserve(kReadsMax, offset(1), "read set");
  d->read_limit = d->reads.end();
  d->writes.reserve(kWritesMax, offset(2), "write set");
  d->write_end = d->writes.begin();
  d->write_limit = d->writes.end();
  d->locked_word = locked_word(slot, 0);
  d->allocated.reserve(kAllocatedMax, offset(3), "log of allocations");
  if (shared.config.blame) d->read_addresses.reserve(kReadsMax, offset(0), "read set (blame)");
  d->contention.random = base::Random(0, slot);  // threads that wait a random time must not wait the same one
  d->handlers.reserve(kHandlersMax, 0, "log of handlers");
  algorithm.attach(*d);
  if (shared.config.privatization == Privatization::shared) grace::join(*d, platform::cpu_number());
  // runtime.B: release pairs with of_slot() and statistics_of_all(), which other threads may call.
  descriptors[slot].store(d, std::memory_order_release);
  return *d;
}

// A key with a destructor instead of a thread_local object: its destructor runs after those of C++ objects, and again
// if one of them has started a transaction after it. Guarded by setup_lock.
constinit pthread_key_t exit_key{};
constinit bool has_exit_key = false;

// Makes the key, unless it is made. Call with setup_lock.
void make_exit_key() noexcept {
  if (has_exit_key) return;
  LOAM_CHECK(pthread_key_create(&exit_key, [](void*) { thread_exit(); }) == 0,
             "tm: no pthread key left for thread exit");
  has_exit_key = true;
}

// The process's transactions all follow one algorithm: two would not see each other's metadata. Call with setup_lock.
void agree_on(const Hooks& algorithm) noexcept {
  LOAM_CHECK(shared.config.mapping != Mapping::hash || algorithm.knows_hash,
             "tm: mapping=hash: {} finds records by shift and mask; take mapping=table, mapping=shadow, or etl-wb-hash",
             algorithm.description->name);
  const Hooks* first = nullptr;
  // Where one attempt runs at a time, nobody looks at records.
  const bool has_records = algorithm.uses_records && algorithm.description->overlaps;
  if (has_records) map_shared_records();
  // runtime.D: the constant that the pointer names needs no publishing
  if (shared.algorithm.compare_exchange_strong(first, &algorithm, std::memory_order_relaxed)) {
    // relaxed: the lock orders this before the first attempt
    if (algorithm.privatizes_safely) shared.slow_begin.fetch_and(~serial::kPublishes, std::memory_order_relaxed);
    make_exit_key();
    process::watch();
    memory::watch_attempts();
    // Of two searches by the rate of commits each would mislead the other.
    if (shared.config.adaptive && has_records && !shared.map.is_sparse() && !algorithm.switches) tuning::start();
    return;
  }
  check_same_algorithm(*first->description, *algorithm.description);
}

}  // namespace

void check_same_algorithm(const AlgorithmDescription& used, const AlgorithmDescription& wanted) noexcept {
  LOAM_CHECK(used.name == wanted.name,
             "tm: a transaction of algorithm {} in a process whose transactions run under {}; use one for all",
             wanted.name, used.name);
}

void configure(const Config& config) noexcept {
  const std::lock_guard guard(setup_lock);
  configure_while_locked(config);
}

void configure_while_locked(const Config& config) noexcept {
  LOAM_CHECK(!in_use.load(std::memory_order_relaxed), "tm: configure() after the first transaction of the process");
  if (shared.map.base != nullptr) platform::unmap(shared.map.base, shared.map.bytes);
  shared.map = {};
  configure_locked(config);
}

void touch_records() noexcept {
  configure_once();
  const std::lock_guard guard(setup_lock);
  LOAM_CHECK(!in_use.load(std::memory_order_relaxed), "tm: touch_records() after the first transaction of the process");
  map_shared_records();
  shared.map.touch();
}

void configure_once() noexcept {
  if (configured.load(std::memory_order_acquire)) return;  // runtime.A
  const std::lock_guard guard(setup_lock);
  if (!configured.load(std::memory_order_relaxed)) configure_locked(Config{});  // relaxed: the lock orders
}

Descriptor* Descriptor::of_slot(unsigned slot) noexcept {
  return descriptors[slot].load(std::memory_order_acquire);  // runtime.B
}

Descriptor& Descriptor::attach_thread(const Hooks& algorithm) noexcept {
  configure_once();
  // A fork waits: it must not happen in the middle, and the first thread's handlers for it come before anybody's
  // attempt.
  const std::lock_guard guard(setup_lock);
  agree_on(algorithm);
  LOAM_POINT("tm.attaching");
  in_use.store(true, std::memory_order_relaxed);  // relaxed: guards against misuse, orders nothing
  const unsigned slot = domain.acquire_slot();
  Descriptor* d = of_slot(slot);
  current_ = d != nullptr ? d : &make_descriptor(slot, algorithm);
  // runtime.C: acquire pairs with the fetch_add of commits: what was committed before the thread began is visible to
  // it.
  current_->snapshot = version_clock.now.load(std::memory_order_acquire);
  domain.attach(slot, current_->participant);
  memory::begin_loan(*current_);
  pthread_setspecific(exit_key, current_);
  return *current_;
}

void Descriptor::set_aside(void (*work)(Descriptor&) noexcept) noexcept {
  Descriptor* const own = current_;
  const Aside aside{own, asides};
  asides = &aside;
  current_ = &nobody_;
  work(*own);
  thread_exit();
  current_ = own;
  memory::begin_loan(*own);
  asides = aside.around;
}

void Descriptor::forget_other_threads() noexcept {
  grace::forget_roles();
  domain.for_each_slot([](unsigned slot) {
    if (is_own(slot, *current_)) return;
    // Its logs and what it held back stay mapped, and lost: their owner may have been in the middle of a change.
    descriptors[slot].store(nullptr, std::memory_order_relaxed);  // relaxed: the process has one thread
    domain.forget_slot(slot);
  });
  switching::forget_role();
}

void prepare_setup() noexcept {
  const std::lock_guard guard(setup_lock);
  make_exit_key();
  domain.touch();
}

void lock_setup() noexcept { setup_lock.lock(); }
void unlock_setup() noexcept { setup_lock.unlock(); }

Descriptor& Descriptor::current() noexcept {
  if (current_->mode != Mode::detached) return *current_;
  const Hooks* const algorithm = shared.algorithm.load(std::memory_order_relaxed);  // runtime.D
  return algorithm == nullptr ? nobody_ : attach_thread(*algorithm);
}

void thread_exit() noexcept {
  Descriptor* const d = Descriptor::current_;
  if (d->mode == Mode::detached) return;
  LOAM_CHECK(d->mode == Mode::idle, "tm: a thread ended, or called thread_exit(), inside a transaction");
  // What the limbo holds back is counted as nobody's from here on. Said before the slot may be another thread's.
  memory::count_none(*d);
  memory::end_loan(*d);
  domain.release_slot(d->slot, d->limbo);
  Descriptor::current_ = &Descriptor::nobody_;
}

std::size_t quiesce() noexcept {
  Descriptor& d = Descriptor::current();
  if (d.mode == Mode::detached) return 0;  // nobody has freed anything
  LOAM_CHECK(d.mode == Mode::idle, "tm: quiesce() inside a transaction");
  const std::size_t held = domain.reclaim(d.participant, d.limbo);
  memory::count_held(d);
  return held;
}

Statistics statistics() noexcept {
  Statistics copy = Descriptor::current().statistics;
  copy.attempts = copy.commits + copy.aborts_total();
  return copy;
}

namespace {

// Its owner adds to the count plainly and it is read meanwhile: a thread sanitizer would tell of it.
[[gnu::no_sanitize_thread]] std::uint64_t commits_of(const Descriptor& d) noexcept {
  return __atomic_load_n(&d.statistics.commits, __ATOMIC_RELAXED);
}

}  // namespace

std::uint64_t commits_so_far() noexcept {
  std::uint64_t sum = 0;
  domain.for_each_slot([&sum](unsigned slot) {
    if (const Descriptor* const d = Descriptor::of_slot(slot)) sum += commits_of(*d);
  });
  return sum;
}

Statistics statistics_of_all() noexcept {
  Statistics sum;
  domain.for_each_slot([&sum](unsigned slot) {
    const Descriptor* const d = Descriptor::of_slot(slot);
    if (d == nullptr) return;
    sum.commits += d->statistics.commits;
    for (std::size_t c = 0; c < kAbortCauses; ++c) sum.aborts[c] += d->statistics.aborts[c];
    for (std::size_t b = 0; b < kAbortsBounds.size(); ++b)
      sum.commits_after_aborts[b] += d->statistics.commits_after_aborts[b];
    sum.hardware += d->statistics.hardware;
    sum.serialised += d->statistics.serialised;
    sum.scalable += d->statistics.scalable;
    sum.switches += d->statistics.switches;
    sum.blocks_allocated += d->statistics.blocks_allocated;
    sum.blocks_freed += d->statistics.blocks_freed;
  });
  sum.attempts = sum.commits + sum.aborts_total();
  return sum;
}

}  // namespace loam::tm
