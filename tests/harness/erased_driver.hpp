// ErasedDriver<A>: Driver<A> for tests, compiled once for all of them.
//   A body of a test is a template, and Driver<A> is one around it: with nine algorithms, up to four kinds of
//   transaction and parts within parts that is thousands of functions for one test, which take ten times longer to
//   compile than to run. Here the body meets one transaction for updates, parts and irrevocable transactions, and one
//   for reading; a call of theirs goes through a table to the algorithm's, which erased_driver.cpp compiles. What is
//   the same: the algorithm, the driver, the test points, exceptions, results. What is not: an access is no longer
//   inlined into the body. So where that is the point, and everywhere with LOAM_TEST_ALL=1, tests use Driver<A> itself
//   (tm_variants.hpp).
#pragma once

#include "runtime/tm/access.hpp"
#include "runtime/tm/attempts/driver.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace loam::tests {

// The word accesses of one of an algorithm's transactions. store: nullptr if it only reads
struct Accesses {
  std::uint8_t (*load_8)(void* tx, const std::uint8_t*);
  std::uint16_t (*load_16)(void* tx, const std::uint16_t*);
  std::uint32_t (*load_32)(void* tx, const std::uint32_t*);
  std::uint64_t (*load_64)(void* tx, const std::uint64_t*);
  void (*store)(void* tx, tm::Word* address, tm::Word value, tm::Word mask);
};

// A transaction of whatever type, while its body runs.
class ErasedTx {
 public:
  ErasedTx(tm::Descriptor& d, void* tx, const Accesses& accesses) noexcept : d_(&d), tx_(tx), accesses_(&accesses) {}
  tm::Descriptor& descriptor() const noexcept { return *d_; }

  template <class U>
  U load(const U* address) {
    if constexpr (sizeof(U) == 1) return accesses_->load_8(tx_, address);
    if constexpr (sizeof(U) == 2) return accesses_->load_16(tx_, address);
    if constexpr (sizeof(U) == 4) return accesses_->load_32(tx_, address);
    if constexpr (sizeof(U) == 8) return accesses_->load_64(tx_, address);
  }
  void store(tm::Word* address, tm::Word value, tm::Word mask) { accesses_->store(tx_, address, value, mask); }

 private:
  tm::Descriptor* d_;
  void* tx_;
  const Accesses* accesses_;
};

struct ErasedReading : ErasedTx, tm::ReadAccess<ErasedReading, false> {
  explicit ErasedReading(const ErasedTx& tx) noexcept : ErasedTx(tx) {}
};
struct ErasedUpdate : ErasedTx, tm::UpdateAccess<ErasedUpdate, false> {
  explicit ErasedUpdate(const ErasedTx& tx) noexcept : ErasedTx(tx) {}
};

struct ErasedBody {
  void* object;
  void (*call)(void* object, const ErasedTx&);
};

// What Driver<A> offers.
struct DriverCalls {
  void (*read_only)(const ErasedBody&);
  void (*update)(const ErasedBody&);
  void (*update_that_commits_on_throw)(const ErasedBody&);
  void (*irrevocable)(const ErasedBody&);
  bool (*closed)(const ErasedBody&);
  void (*or_else)(const ErasedBody&, const ErasedBody&);
  void (*cancel)();
  void (*wait_for_change)();
  void (*release_read)(const void* object, std::size_t bytes);
};
// Those of the algorithm of this name (without blame), which erased_driver.cpp was compiled for.
const DriverCalls& driver_calls(std::string_view algorithm);

template <tm::Algorithm A>
class ErasedDriver {
 public:
  using Uses = A;
  static constexpr bool kReleasesReads = tm::Driver<A>::kReleasesReads;
  static constexpr bool kResumesParts = tm::Driver<A>::kResumesParts;

  template <class F>
  static auto read_only(F&& body) {
    return run<ErasedReading>(calls().read_only, body);
  }
  template <tm::OnThrow kOnThrow = tm::OnThrow::cancel, class F>
  static auto update(F&& body) {
    return run<ErasedUpdate>(kOnThrow == tm::OnThrow::cancel ? calls().update : calls().update_that_commits_on_throw,
                             body);
  }
  template <class F>
  static auto irrevocable(F&& body) {
    return run<ErasedUpdate>(calls().irrevocable, body);
  }
  template <class F>
  static bool closed(F&& body) {
    return calls().closed(erased(body));
  }
  template <class F, class G>
  static void or_else(F&& first, G&& second) {
    calls().or_else(erased(first), erased(second));
  }
  [[noreturn]] static void cancel() {
    calls().cancel();
    __builtin_unreachable();
  }
  [[noreturn]] static void wait_for_change() {
    calls().wait_for_change();
    __builtin_unreachable();
  }
  static void release_read(const void* object, std::size_t bytes) noexcept { calls().release_read(object, bytes); }

 private:
  // Not a static local: its guard is a lock. If a process forks while another thread holds it, the child waits for ever.
  static const DriverCalls& calls() {
    const DriverCalls* calls = found.load(std::memory_order_relaxed);  // relaxed: it points to constants
    if (calls == nullptr) found.store(calls = &driver_calls(A::kDescription.name), std::memory_order_relaxed);
    return *calls;
  }
  static inline constinit std::atomic<const DriverCalls*> found = nullptr;

  template <class F>
  static ErasedBody erased(F& body) {
    return {const_cast<std::remove_const_t<F>*>(std::addressof(body)), [](void* object, const ErasedTx& erased) {
              ErasedUpdate tx(erased);
              (*static_cast<F*>(object))(tx);
            }};
  }

  template <class Tx, class F>
  static auto run(void (*call)(const ErasedBody&), F& body) {
    using Result = std::invoke_result_t<F&, Tx&>;
    if constexpr (std::is_void_v<Result>) {
      call({const_cast<std::remove_const_t<F>*>(std::addressof(body)), [](void* object, const ErasedTx& erased) {
              Tx tx(erased);
              (*static_cast<F*>(object))(tx);
            }});
    } else {
      // An attempt that ends early leaves the frame below without its destructors: a result has none (Call).
      static_assert(std::is_trivially_destructible_v<Result>);
      struct Returning {
        F& body;
        std::optional<Result> result;
      } returning{body, {}};
      call({&returning, [](void* object, const ErasedTx& erased) {
              Tx tx(erased);
              auto& to = *static_cast<Returning*>(object);
              to.result.emplace(to.body(tx));
            }});
      return *returning.result;
    }
  }
};

}  // namespace loam::tests
