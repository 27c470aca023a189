// libitm: the same structures, compiled by g++ -fgnu-tm. One executable serves three synchronisations
//   (cmake/LoamPaths.cmake): libitm on GCC's own library, a peer to compare with; loam-itm on ours in its place
//   (runtime/itm); loam-itm-hybrid on ours, started with LOAM_ITM_ALGORITHM=hybrid-norec.
//   Caveat: both libraries choose their algorithm by a variable that they read at the first transaction; configure()
//   sets it. Their statistics cannot be read from outside, so commits and aborts are left out of the records.
#pragma once

#include "runtime/tm/hardware/availability.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/sync.hpp"

#include <atomic>
#include <cstdlib>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

// What GCC calls for malloc and free inside a transaction. Named here because the build disables the built-in malloc,
// by which GCC would find them. transaction_pure: called as they are, without a transactional clone.
extern "C" [[gnu::transaction_pure]] void* _ITM_malloc(std::size_t bytes) noexcept;
extern "C" [[gnu::transaction_pure]] void _ITM_free(void* block) noexcept;
extern "C" const char* _ITM_libraryVersion() noexcept;

namespace loam::workloads {

// The accesses are plain: GCC turns those inside a transaction into calls of its library.
class LibitmAccess {
 public:
  // change: blocks created minus destroyed, of the attempt that committed
  explicit LibitmAccess(std::int64_t& change) noexcept : change_(&change) {}

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
    ++*change_;
    return construct<Node>(_ITM_malloc(sizeof(Node)), values...);
  }
  template <class Node>
  [[gnu::always_inline]] void destroy(Node* node) noexcept {
    --*change_;
    _ITM_free(node);
  }
  [[gnu::always_inline]] void* allocate(std::size_t bytes) noexcept {
    ++*change_;
    return _ITM_malloc(bytes);
  }
  [[gnu::always_inline]] void release(void* block) noexcept {
    --*change_;
    _ITM_free(block);
  }

 private:
  template <class Node, class... Values>
  [[gnu::transaction_pure, gnu::noinline]] static Node* construct(void* block, Values... values) noexcept {
    return ::new (block) Node{values...};
  }

  std::int64_t* change_;
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
                                                  .kind = SyncKind::transactional,
                                                  .guarantees = "publication and privatization safe",
                                                  .parameters = kParameters};
    static constexpr std::string_view kAlgorithms[] = {"norec", "etl-wb"};
    static constexpr ParameterSpec kOurParameters[] = {
        ParameterSpec::choice("algorithm", kAlgorithms, "LOAM_ITM_ALGORITHM: the algorithm behind the interface")};
    static constexpr SyncDescription kOurs{.name = "loam-itm",
                                           .summary = "the executable of libitm on our library for g++ -fgnu-tm",
                                           .paper = "",
                                           .kind = SyncKind::transactional,
                                           .guarantees = "opacity; publication and privatization safe",
                                           .parameters = kOurParameters};
    static constexpr SyncDescription kHybrid{
        .name = "loam-itm-hybrid",
        .summary = "the executable of libitm on our library, in hardware where a transaction fits",
        .paper = "",
        .kind = SyncKind::transactional,
        .guarantees = "opacity; publication and privatization safe",
        .needs = "hardware transactions",
        .reason_against = tm::hardware::reason_against};
    return is_hybrid() ? kHybrid : is_ours() ? kOurs : kDescription;
  }

  static void configure(const Options& options) {
    // setenv keeps a copy in a block of its own, once, before the workload's first.
    if (is_hybrid()) return;
    if (is_ours())
      ::setenv("LOAM_ITM_ALGORITHM", options.parameters.choice("algorithm").data(), 1);
    else
      ::setenv("ITM_DEFAULT_METHOD", options.parameters.choice("method").data(), 1);
  }

  template <class F>
  [[gnu::always_inline]] static auto read_only(F&& f) {
    return update(f);
  }
  template <class F>
  [[gnu::always_inline]] static auto update(F&& f) {
    std::invoke_result_t<F&, LibitmAccess&> result;
    std::int64_t change = 0;
    __transaction_atomic {
      LibitmAccess access(change);
      result = f(access);
    }
    live += change;
    return result;
  }

  static void note_block(const void*, std::size_t) {}
  static void thread_exit() {
    live_of_exited.fetch_add(live, std::memory_order_relaxed);  // relaxed: read after joining
    live = 0;
  }
  static void quiesce() {}
  static std::int64_t live_blocks() { return live + live_of_exited.load(std::memory_order_relaxed); }

 private:
  static bool is_ours() noexcept { return std::string_view(_ITM_libraryVersion()).starts_with("Loam"); }
  // Known before configure(), because the process was started with the variable.
  static bool is_hybrid() noexcept {
    static const bool hybrid = [] {
      const char* const algorithm = std::getenv("LOAM_ITM_ALGORITHM");
      return is_ours() && algorithm != nullptr && std::string_view(algorithm) == "hybrid-norec";
    }();
    return hybrid;
  }

  inline static thread_local constinit std::int64_t live = 0;
  inline static constinit std::atomic<std::int64_t> live_of_exited{0};
};
using BlameSync = Sync;

}  // namespace loam::workloads
