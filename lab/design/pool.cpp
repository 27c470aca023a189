// The allocator `pool`: paper 003's memory manager (runtime/heap/pool) as malloc and free, and its side of
// runtime/platform/provision.hpp.
#include "runtime/heap/pool/manager.hpp"

#include "lab/design/exported.hpp"
#include "lab/design/settings.hpp"
#include "lab/design/start_once.hpp"
#include "lab/design/thread_end.hpp"
#include "runtime/platform/provision.hpp"

#include <new>

#define LOAM_SHOWN extern "C" [[gnu::visibility("default")]]

LOAM_SHOWN const char loam_pool_version[] = "loam pool 1.0.0";

namespace loam::design {
namespace {

using heap::pool::Chunk;
using heap::pool::chunk_bytes;
using heap::pool::Manager;
using heap::pool::Pool;
using heap::pool::Provision;
using heap::pool::Settings;

constinit Manager manager;
constinit StartOnce started;
constinit ThreadEnd thread_end;
int (*in_software_attempt)() = nullptr;
constinit bool has_transactions = false;  // the processor; set before any thread has a pool
thread_local constinit Pool* mine = nullptr;

bool in_hardware_attempt() noexcept { return has_transactions && platform::in_transaction(); }

Settings settings_of_environment() {
  constexpr std::size_t kSizeMax = std::size_t{1} << 40;
  Settings found;
  found.pool_bytes = number_of("LOAM_POOL_BYTES", found.pool_bytes, 16, kSizeMax);
  found.limit_bytes = number_of("LOAM_POOL_LIMIT_BYTES", found.limit_bytes, 1 << 16, kSizeMax);
  found.small_bytes = number_of("LOAM_POOL_SMALL_BYTES", 0, 0, kSizeMax);
  found.small_count = static_cast<unsigned>(number_of("LOAM_POOL_SMALL_THREADS", 1, 1, 4096));
  constexpr std::string_view kProvisions[] = {"pool", "block"};
  found.provision = static_cast<Provision>(choice_of("LOAM_POOL_PROVISION", kProvisions));
  constexpr std::string_view kPrivate[] = {"1", "0"};
  found.private_pools = choice_of("LOAM_POOL_PRIVATE", kPrivate) == 0;
  constexpr std::string_view kGuards[] = {"auto", "lock", "transaction"};
  const std::size_t guard = choice_of("LOAM_POOL_GUARD", kGuards);
  has_transactions = platform::has_transactions();
  LOAM_CHECK(
      guard != 2 || has_transactions,
      "LOAM_POOL_GUARD=transaction: this machine has no hardware transactions; set it to lock, or run on a simulated "
      "machine that has them");
  found.elide = guard != 1 && has_transactions && found.private_pools;
  constexpr std::string_view kSteal[] = {"0", "1"};
  found.steal = choice_of("LOAM_POOL_STEAL", kSteal) == 1;
  LOAM_CHECK(!found.steal || found.private_pools,
             "LOAM_POOL_STEAL=1: there are no pools to steal from with LOAM_POOL_PRIVATE=0; leave out one of the two");
  LOAM_CHECK(found.pool_bytes <= found.limit_bytes / 2,
             "LOAM_POOL_LIMIT_BYTES={}: is less than two pools of LOAM_POOL_BYTES={}; raise it, or lower the other",
             found.limit_bytes, found.pool_bytes);
  return found;
}

void end_of_thread(void* pool) {
  mine = nullptr;
  manager.end_thread(*static_cast<Pool*>(pool));
}
void before_fork() { manager.before_fork(); }
void after_fork() { manager.after_fork(); }

void start() noexcept {
  if (!manager.start(settings_of_environment()))
    LOAM_FATAL("pool: the system refuses {} bytes of addresses; lower LOAM_POOL_LIMIT_BYTES",
               manager.settings().limit_bytes);
}

// The thread's first call. A hardware attempt ends: what has to be done is no part of it.
[[gnu::noinline, gnu::cold]] Pool* begin_thread(std::size_t bytes) noexcept {
  if (in_hardware_attempt()) platform::abort_for_provision(bytes);
  started.ensure(start);
  Pool* const pool = manager.begin_thread();
  if (pool == nullptr) return nullptr;
  mine = pool;  // before what follows, which may allocate
  thread_end.start(end_of_thread, before_fork, after_fork);
  thread_end.watch(pool);
  return pool;
}

// Whether a use of the own pool is part of a hardware attempt; asked only where thieves have to see it.
bool is_watched() noexcept { return manager.settings().steal && in_hardware_attempt(); }

// The pool has no chunk that is long enough.
[[gnu::noinline, gnu::cold]] Chunk* provide(Pool& pool, std::size_t bytes) noexcept {
  if (pool.exhausted) {
    pool.exhausted = false;
    pool.wanted_bytes = 0;
    return nullptr;
  }
  if (in_hardware_attempt()) platform::abort_for_provision(bytes);
  pool.wanted_bytes = bytes;
  if (in_software_attempt != nullptr && in_software_attempt() != 0) return nullptr;
  Chunk* found = nullptr;
  do {
    manager.provide(pool, bytes);
    found = manager.take(pool, chunk_bytes(bytes), false);
    // A thief may have been here in between.
  } while (found == nullptr && !pool.exhausted);
  pool.wanted_bytes = 0;
  pool.exhausted = false;
  return found;
}

Chunk* take(std::size_t bytes) noexcept {
  Pool* pool = mine;
  if (pool == nullptr) [[unlikely]]
    pool = begin_thread(bytes);
  if (pool == nullptr) return nullptr;
  const std::size_t chunk = chunk_bytes(bytes);
  if (chunk == 0) [[unlikely]]
    return nullptr;
  if (!manager.settings().private_pools) return manager.take_shared(chunk);
  Chunk* const found = manager.take(*pool, chunk, is_watched());
  if (found == nullptr) [[unlikely]]
    return provide(*pool, bytes);
  return found;
}

void give(Chunk* chunk) noexcept {
  Pool* pool = mine;
  if (pool == nullptr) [[unlikely]]
    pool = begin_thread(0);
  if (manager.settings().private_pools && pool != nullptr)
    manager.give(*pool, chunk, is_watched());
  else
    manager.give_shared(chunk);
}

}  // namespace

void* allocate(std::size_t bytes) noexcept {
  Chunk* const chunk = take(bytes);
  return chunk == nullptr ? nullptr : chunk->block();
}

void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
  if (bytes > PTRDIFF_MAX / 2 || alignment > PTRDIFF_MAX / 4) return nullptr;
  Chunk* chunk = take(bytes + alignment);
  if (chunk == nullptr) return nullptr;
  const auto block = reinterpret_cast<std::uintptr_t>(chunk->block());
  const std::size_t before = ((block + alignment - 1) & ~(alignment - 1)) - block;
  if (before != 0) {
    auto* const rest = reinterpret_cast<Chunk*>(chunk->start() + before);
    rest->bytes = chunk->bytes - before;
    chunk->bytes = before;
    give(chunk);
    chunk = rest;
  }
  return chunk->block();
}

void release(void* block) noexcept { give(Chunk::of(block)); }

std::size_t usable(const void* block) noexcept {
  return Chunk::of(const_cast<void*>(block))->bytes - heap::pool::kHeaderBytes;
}

bool is_zeroed(std::size_t) noexcept { return false; }

}  // namespace loam::design

LOAM_SHOWN void loam_provision_watch(int (*in_attempt)()) { loam::design::in_software_attempt = in_attempt; }
LOAM_SHOWN std::size_t loam_provision_wanted() {
  const auto* const pool = loam::design::mine;
  return pool == nullptr ? 0 : pool->wanted_bytes;
}
LOAM_SHOWN void loam_provision(std::size_t bytes) {
  using namespace loam::design;
  Pool* pool = mine;
  const bool begins = pool == nullptr;
  if (begins) pool = begin_thread(bytes);
  if (pool == nullptr || !manager.settings().private_pools) return;
  // A pool that begins may do. Another one does not, whatever is free in it by now: what the attempt had taken has come
  // back, and the next attempt takes it again before it asks for this.
  if (!begins || manager.longest(*pool) < chunk_bytes(bytes)) manager.provide(*pool, bytes);
  pool->wanted_bytes = 0;
}
