// libitm: the same structures, compiled by g++ -fgnu-tm and run by GCC's own transactional memory.
//   A peer to compare with, not a part of Loam.   Source libitm, the runtime library of GCC.
//   Caveat: the method is chosen by the environment that libitm reads at its first transaction; configure() sets it.
//   Its statistics cannot be read from outside, so commits and aborts are left out of the records.
#pragma once

#include "workloads/harness/options.hpp"
#include "workloads/harness/sync.hpp"

#include <atomic>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

// What GCC calls for malloc and free inside a transaction. Named here because the build disables the built-in malloc,
// by which GCC would find them. transaction_pure: called as they are, without a transactional clone.
extern "C" [[gnu::transaction_pure]] void* _ITM_malloc(std::size_t bytes) noexcept;
extern "C" [[gnu::transaction_pure]] void _ITM_free(void* block) noexcept;

namespace loam::workloads {

// The accesses are plain: GCC turns those inside a transaction into calls of its library.
class LibitmAccess {
 public:
  template <class Field>
  [[gnu::always_inline]] Field read(const Field& field) const noexcept {
    return field;
  }
  template <class Field>
  [[gnu::always_inline]] void write(Field& field, std::type_identity_t<Field> value) const noexcept {
    field = value;
  }

  // Plain stores into the new block: nobody else can see it yet. A failed malloc ends in a null access.
  template <class Node, class... Values>
  [[gnu::always_inline]] Node* create(Values... values) noexcept {
    ++created_;
    return construct<Node>(_ITM_malloc(sizeof(Node)), values...);
  }
  template <class Node>
  [[gnu::always_inline]] void destroy(Node* node) noexcept {
    ++destroyed_;
    _ITM_free(node);
  }

  // Of the attempt that committed.
  std::int64_t created_ = 0, destroyed_ = 0;

 private:
  template <class Node, class... Values>
  [[gnu::transaction_pure, gnu::noinline]] static Node* construct(void* block, Values... values) noexcept {
    return ::new (block) Node{values...};
  }
};

struct Sync {
  static const SyncDescription& description() {
    static constexpr std::string_view kMethods[] = {"ml_wt",  "gl_wt",     "htm",
                                                    "serial", "serialirr", "serialirr_onwrite"};
    static constexpr ParameterSpec kParameters[] = {ParameterSpec::choice(
        "method", kMethods, "ITM_DEFAULT_METHOD: the algorithm of libitm; htm needs working hardware transactions")};
    static constexpr SyncDescription kDescription{.name = "libitm",
                                                  .summary = "GCC's transactional memory, g++ -fgnu-tm",
                                                  .paper = "GCC, libitm",
                                                  .guarantees = "publication and privatization safe",
                                                  .aborts = SyncDescription::Aborts::unknown,
                                                  .parameters = kParameters};
    return kDescription;
  }

  static void configure(const ParameterValues& values, bool) {
    // setenv keeps a copy in a block of its own, once, before the workload's first.
    ::setenv("ITM_DEFAULT_METHOD", values.choice("method").data(), 1);
  }

  template <class F>
  [[gnu::always_inline]] static auto read_only(F&& f) {
    return update(f);
  }
  template <class F>
  [[gnu::always_inline]] static auto update(F&& f) {
    std::invoke_result_t<F&, LibitmAccess&> result;
    std::int64_t change;
    __transaction_atomic {
      LibitmAccess access;
      result = f(access);
      change = access.created_ - access.destroyed_;
    }
    live += change;
    return result;
  }

  static Counters counters() { return {}; }
  static void note_block(const void*, std::size_t) {}
  static void thread_exit() {
    live_of_exited.fetch_add(live, std::memory_order_relaxed);  // relaxed: read after joining
    live = 0;
  }
  static void quiesce() {}
  static std::int64_t live_blocks() { return live + live_of_exited.load(std::memory_order_relaxed); }

 private:
  inline static thread_local constinit std::int64_t live = 0;
  inline static constinit std::atomic<std::int64_t> live_of_exited{0};
};
using BlameSync = Sync;

}  // namespace loam::workloads
