// hybrid: transactions in hardware and in software at the same time: Hybrid NOrec.
//   A hardware attempt runs the body with plain accesses. It has read NOrec's sequence number, so a software commit
//   aborts it before anything is written back. A hardware commit that wrote changes the sequence number itself, but
//   only while a software transaction runs, whose reads then validate. Without software transactions, disjoint hardware
//   transactions write no common cache line.
//   Source      Dalessandro et al., ASPLOS 2011; Riegel et al., SPAA 2011. The counter of software transactions:
//               docs/adr.
//   Guarantees  those of norec: opacity, publication and privatization safe. A hardware attempt never acts on a torn
//               state, because the processor aborts it first.
//   Memory      If malloc lends stocks, hardware attempts take blocks from them (lent.hpp); otherwise they call malloc.
//   Cost        besides the hardware's: four loads for each attempt, one more if it wrote.
//   Too large   If the transactions at a place of the program do not fit into the hardware, most of them do not try it
//               (fit.hpp).
//   When not    transactions that mostly fall back: each software commit aborts all hardware attempts.
// Why software sees no inconsistent state
//   H1  An attempt that committed while `software` was 0 had this word in its read set. So every software transaction
//       that began later has incremented it after the commit, and reads what the attempt wrote.
//   H2  An attempt that committed while `software` was not 0 changed the sequence number at the same instant as its
//       data. So a thread that reads new data and then the sequence number finds it changed.
//   H3  A running attempt aborts when a software commit makes the sequence number odd, which happens before any
//       write-back.
//   H4  Blocks that an attempt frees wait for quiescence, as in software: a software reader may still read them.
// Memory orders; in brackets the failure without the pair
//   hybrid.A  software's fetch_add(seq_cst) / the load within a hardware transaction [the processor's conflict detection
//             orders them; seq_cst makes the count visible before the software transaction's first read: H1]
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/tm/algorithms/norec.hpp"
#include "runtime/tm/attempts/driver.hpp"
#include "runtime/tm/attempts/memory.hpp"
#include "runtime/tm/attempts/serial.hpp"
#include "runtime/tm/attempts/waiting.hpp"
#include "runtime/tm/hardware/fit.hpp"
#include "runtime/tm/hardware/lent.hpp"
#include "runtime/tm/hardware/policy.hpp"
#include "runtime/tm/runtime.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

namespace loam::tm::hardware {

// The state of a hardware attempt. It lies on the stack of the thread, so an abort resets it.
struct Attempt {
  platform::Stocks* stocks;  // nullptr: malloc lends nothing
  Taken taken{};
  bool wrote = false;

  explicit Attempt(const Descriptor& d) noexcept : stocks(d.stocks == &platform::no_stocks ? nullptr : d.stocks) {}
};

// The accesses of a hardware attempt.
class PlainTx {
 public:
  PlainTx(Descriptor& d, Attempt& attempt) noexcept : d_(&d), attempt_(&attempt) {}

  template <class T>
  [[gnu::always_inline]] T read(const T& field) const noexcept {
    static_assert(std::is_trivially_copyable_v<T>);
    return field;
  }
  template <class T>
  [[gnu::always_inline]] void write(T& field, std::type_identity_t<T> value) const noexcept {
    attempt_->wrote = true;
    field = value;
  }
  template <class T, class... Arguments>
  T* create(Arguments&&... arguments) const {
    return ::new (allocate(sizeof(T))) T{std::forward<Arguments>(arguments)...};
  }
  template <class T>
  void destroy(T* object) const noexcept {
    static_assert(std::is_trivially_destructible_v<T>);
    memory::release(*d_, object, sizeof(T), memory::kDeleterOf<sizeof(T)>);  // H4
  }
  // If there is no memory, the attempt aborts, and the software transaction reports it: an exception cannot leave a
  // hardware attempt.
  [[gnu::always_inline]] void* allocate(std::size_t bytes) const noexcept {
    ++attempt_->taken.blocks;
    if (attempt_->stocks == nullptr || bytes > platform::kStockBytesMax) return call_malloc(bytes);
    const unsigned number = platform::stock_of(bytes);
    void* const block = take(*attempt_->stocks, number, attempt_->taken);
    if (block == nullptr) [[unlikely]]
      abort_for_stock(number);
    return block;
  }
  void release(void* block) const noexcept { memory::release(*d_, block, 0); }  // H4

 private:
  static constexpr std::uint8_t kNoMemory = 2;

  static void* call_malloc(std::size_t bytes) noexcept {
    void* const block = memory::rounded(bytes) < bytes ? nullptr : std::malloc(memory::rounded(bytes));
    if (block == nullptr) [[unlikely]]
      platform::transaction_abort<kNoMemory>();
    return block;
  }

  Descriptor* d_;
  Attempt* attempt_;
};

// The number of running software transactions, alone on its lines.
struct alignas(platform::kApartBytes) SoftwareCount {
  std::atomic<std::uint64_t> value{0};
};
inline constinit SoftwareCount software;

class Hybrid {
  using Software = Driver<Norec<false>>;

 public:
  template <class F>
  [[gnu::always_inline]] static auto read_only(F&& f) {
    return run<false>(f);
  }
  template <class F>
  [[gnu::always_inline]] static auto update(F&& f) {
    return run<true>(f);
  }

  // Without a hardware attempt.
  template <bool kUpdates, class F>
  [[gnu::noinline]] static auto in_software(F& f) {
    const Counted counted;
    const auto body = [&f](auto tx) __attribute__((flatten)) { return f(tx); };
    if constexpr (kUpdates)
      return Software::update(body);
    else
      return Software::read_only(body);
  }

  // The parts of an attempt, for code that begins attempts in another way (runtime/itm).

  // Whether a software commit writes back, or a transaction runs alone. An attempt reads it first (H3).
  static bool must_wait() noexcept {
    return norec_sequence.now.load(std::memory_order_acquire) % 2 != 0 || serial::closed();
  }
  // Whether a software transaction runs. If an attempt reads it, the answer holds until the attempt has committed.
  // relaxed: hybrid.A
  static bool beside_software() noexcept { return software.value.load(std::memory_order_relaxed) != 0; }
  // The end of an attempt that wrote: makes software transactions validate (H2). returns whether there are any
  [[gnu::always_inline]] static bool tell() noexcept {
    if (!beside_software()) return false;
    // relaxed: H2, the processor makes all of it visible at once
    const std::uint64_t now = norec_sequence.now.load(std::memory_order_relaxed);
    norec_sequence.now.store(now + 2, std::memory_order_relaxed);
    return true;
  }
  // An attempt has committed. told: what tell() returned
  [[gnu::always_inline]] static void committed(Descriptor& d, bool told) noexcept {
    ++d.statistics.commits;
    ++d.statistics.hardware;
    if (d.special || told) [[unlikely]]
      committed_special(d, told);
  }
  static void begin_in_software() noexcept { software.value.fetch_add(1, std::memory_order_seq_cst); }  // hybrid.A
  // release: an attempt that finds no software transaction finds what they wrote.
  static void end_in_software() noexcept { software.value.fetch_sub(1, std::memory_order_release); }

 private:
  struct Counted {
    Counted() noexcept { begin_in_software(); }
    ~Counted() { end_in_software(); }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
  };

  static constexpr std::size_t kReleasedAtFirst = 64;  // room for the blocks that a thread's first transactions release

  // The Fit of the calling thread for the place in the program whose bodies have this type.
  template <class F>
  static Fit& fit_of() noexcept {
    static thread_local constinit Fit fit;
    return fit;
  }

  static Descriptor& attached() {
    Descriptor* d = &Descriptor::current_or_detached();
    if (d->mode == Mode::detached) [[unlikely]] {
      Software::read_only([](auto&) { return 0; });
      d = &Descriptor::current_or_detached();
      abort_for_stock(platform::kStocks);
      domain.make_room(d->limbo, kReleasedAtFirst);
    }
    return *d;
  }

  template <bool kUpdates, class F>
  [[gnu::always_inline]] static auto run(F& f) {
    Descriptor& d = attached();
    if (d.mode != Mode::idle) [[unlikely]]
      return in_software<kUpdates>(f);
    Fit& fit = fit_of<F>();
    if (!fit.tries()) [[unlikely]]
      return in_software<kUpdates>(f);
    if (d.stocks_used != 0) [[unlikely]]
      refill(*d.stocks, std::exchange(d.stocks_used, 0));
    for (unsigned tries = 1;; ++tries) {
      Attempt attempt(d);
      const unsigned status = platform::transaction_begin();
      if (status == platform::kTransactionStarted) [[likely]] {
        if (must_wait()) platform::transaction_abort<kFallbackTaken>();  // H3
        bool told = false;
        PlainTx tx(d, attempt);
        const auto result = f(tx);
        if constexpr (kUpdates)
          if (attempt.wrote || d.special) told = tell();
        platform::transaction_commit();
        fit.fitted();
        if (tries > 1) d.statistics.count_commit_after(tries - 1);
        d.statistics.blocks_allocated += attempt.taken.blocks;
        d.stocks_used |= attempt.taken.stocks;
        committed(d, told);
        return result;
      }
      const AbortCause cause = cause_of(status);
      ++d.statistics.aborts[static_cast<std::size_t>(cause)];
      if (cause == AbortCause::capacity) fit.did_not_fit();
      switch (next_after(status, tries)) {
        case Next::fall_back:
          return in_software<kUpdates>(f);
        case Next::wait_and_try_again: {
          sync::Backoff backoff;
          while (must_wait()) backoff.wait();
          break;
        }
        case Next::provide:
          if (!provide(*d.stocks, platform::explicit_code(status))) return in_software<kUpdates>(f);
          break;
        case Next::try_again:
          break;
      }
    }
  }

  [[gnu::noinline]] static void committed_special(Descriptor& d, bool told) noexcept {
    if (d.special) {
      d.special = false;
      const std::size_t released = d.limbo.proposals();
      domain.accept(d.limbo);
      domain.settle(d.participant, d.limbo);
      domain.make_room(d.limbo, 2 * released);
      memory::count_held(d);
    }
    if (told) waiting::notify();
  }
};

}  // namespace loam::tm::hardware
