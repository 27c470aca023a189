// SentSync: whichever scheme of delegation an executable has, as the applications see it. They are compiled once for all
// schemes: an operation is a function and its context here already, which is what every scheme sends.
//   Cost  one call more for each operation than SchemeSync, which inlines the scheme.
#pragma once

#include "structures/ordered_access.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace loam::workloads {

// Defined by the executable's own synchronisation (scheme.hpp).
namespace sent {
void apply(void (*operation)(void* context), void* context);
void quiesce();
}  // namespace sent

struct SentSync {
  template <class F>
  static auto update(F&& f) {
    structures::PlainAccess access;
    using Result = decltype(f(access));
    struct Context {
      std::remove_reference_t<F>& f;
      std::optional<Result> result;
    } context{f, {}};
    sent::apply(
        [](void* argument) {
          auto& sent = *static_cast<Context*>(argument);
          structures::PlainAccess executors;
          sent.result.emplace(sent.f(executors));
        },
        &context);
    return *context.result;
  }
  template <class F>
  static auto read_only(F&& f) {
    return update(f);
  }

  static void note_block(const void*, std::size_t) {}
  static void thread_exit() { structures::PlainAccess::hand_over_counts(); }
  static void quiesce() { sent::quiesce(); }
  static std::int64_t live_blocks() {
    quiesce();
    return structures::PlainAccess::live_blocks();
  }
};

using Sync = SentSync;
using BlameSync = SentSync;

}  // namespace loam::workloads
