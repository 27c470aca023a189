#include "runtime/itm/thread.hpp"

#include "runtime/base/check.hpp"
#include "runtime/base/format.hpp"
#include "runtime/base/found.hpp"
#include "runtime/itm/unwritten.hpp"
#include "runtime/platform/pages.hpp"
#include "runtime/sync/owned_lock.hpp"
#include "runtime/tm/algorithms.hpp"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <span>
#include <string_view>

#include <pthread.h>

namespace loam::itm {
namespace {

// Guards the variables below. They are consistent at every moment, so the child of a fork can continue with them.
constinit sync::OwnedLock lock;
constinit Thread* free_threads = nullptr;  // states of threads that have ended
constinit std::uint64_t objects = 0;       // how many Threads were made
constinit pthread_key_t exit_key{};        // its destructor is at_exit(); the child of a fork may make it once more
constinit bool exit_key_is_made = false;

// Gives a thread's state back at its end. A key's destructor runs again if a later one has begun a transaction.
void at_exit(void* ended) noexcept {
  Thread& t = *static_cast<Thread*>(ended);
  LOAM_CHECK(t.depth == 0, "libitm: a thread ended inside a transaction");
  t.locals.forget();
  alone::part(t.member);
  const std::lock_guard guard(lock);
  t.next_free = free_threads;
  free_threads = &t;
  current = nullptr;
}

// Algorithms behind this interface run in software, because its calls are the accesses, or in software and hardware.
[[noreturn]] void refuse(std::string_view name) noexcept {
  char list[200];
  base::TextWriter all(list);
  const std::span<const std::string_view> known = tm::Algorithms::kNames;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (i != 0) all.put(", ");
    all.put(known[i]);
  }
  LOAM_FATAL("libitm: LOAM_ITM_ALGORITHM={}: no algorithm behind this interface has this name; choose of {}, {}", name,
             all.text(), hardware::kName);
}

struct Choice {
  const open::Operations* operations;
  bool is_hybrid;
};

Choice find_choice() noexcept {
  const char* const asked = std::getenv("LOAM_ITM_ALGORITHM");
  const std::string_view name = asked != nullptr && *asked != '\0' ? asked : "norec";
  const open::Operations* const found = open::operations_of(name == hardware::kName ? "norec" : name);
  if (found == nullptr) refuse(name);
  return {found, hardware::chosen(name)};
}

Choice choice() noexcept {
  static constinit base::Found<Choice> found;
  return found.get(find_choice);
}

}  // namespace

[[gnu::tls_model("initial-exec")]] thread_local constinit Thread* current = nullptr;

Thread& attached() noexcept {
  if (current != nullptr) [[likely]]
    return *current;
  std::uint64_t number = 0;
  {
    const std::lock_guard guard(lock);
    if (!exit_key_is_made) {
      LOAM_CHECK(pthread_key_create(&exit_key, at_exit) == 0, "libitm: no pthread key left for thread exit");
      exit_key_is_made = true;
    }
    if (free_threads != nullptr) {
      current = free_threads;
      free_threads = current->next_free;
    }
    if (current == nullptr) number = ++objects;
  }
  if (current == nullptr) {
    current = ::new (platform::map_lazy_or_die(sizeof(Thread), "a thread's transactions")) Thread;
    current->number = number;
    const Choice chosen = choice();
    current->operations = current->in_software = chosen.operations;
    current->is_hybrid = chosen.is_hybrid;
    current->undo.reserve();
    current->forget_captured();
    current->unwritten = until_a_write(*current->in_software);
  }
  LOAM_CHECK(pthread_setspecific(exit_key, current) == 0, "libitm: no memory for a thread's transactions");
  alone::join(current->member);
  return *current;
}

void mend_threads_in_child() noexcept {
  if (lock.is_orphaned()) lock.unlock();
}

Thread& running_or_die(const char* call) noexcept {
  Thread* const t = running();
  LOAM_CHECK(t != nullptr, "libitm: {} outside of transactions", call);
  return *t;
}

void Thread::capture(const void* block, std::size_t bytes, unsigned most) noexcept {
  if (captured_count >= most || bytes == 0) return;
  const Range range{reinterpret_cast<std::uintptr_t>(block), bytes};
  if (captured_count == 0) {
    all_captured = range;
  } else {
    const std::uintptr_t begin = std::min(all_captured.begin, range.begin);
    all_captured = {begin, std::max(all_captured.begin + all_captured.bytes, range.begin + range.bytes) - begin};
  }
  captured[captured_count++] = range;
}

void Thread::release(const void* block) noexcept {
  const auto end = captured.begin() + captured_count;
  const auto found = std::find_if(
      captured.begin(), end,
      [address = reinterpret_cast<std::uintptr_t>(block)](const Range& range) { return range.begin == address; });
  if (found == end) return;
  undo.forget_values(*found);
  std::copy(found + 1, end, found);  // in their order: those of a part are the last ones
  --captured_count;
}

}  // namespace loam::itm
