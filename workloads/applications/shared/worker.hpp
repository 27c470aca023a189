// Worker: one thread in an application's timed region.
#pragma once

#include "runtime/sync/barrier.hpp"
#include "workloads/applications/shared/report.hpp"

#include <cstdint>

namespace loam::workloads::applications {

// Whether a transaction can be taken back.
template <class SyncType>
inline constexpr bool kRestarts = requires { SyncType::restart(); };
// Whether there is one thread and no synchronisation.
template <class SyncType>
inline constexpr bool kAlone = requires { SyncType::kAlone; };

// One thread in the timed region.
template <class SyncType>
class Worker {
 public:
  Worker(unsigned index, unsigned threads, std::uint64_t abort_every, sync::Barrier& barrier) noexcept
      : index_(index), threads_(threads), abort_every_(abort_every), barrier_(barrier) {
    expect_abort();
  }

  unsigned index() const noexcept { return index_; }
  unsigned threads() const noexcept { return threads_; }
  bool is_first() const noexcept { return index_ == 0; }

  // Runs f(access) as one transaction of `site` and returns what it returned last.
  template <class F>
  [[gnu::always_inline]] auto update(unsigned site, F&& f) {
    if constexpr (requires { SyncType::at(site); }) SyncType::at(site);
    const auto result = SyncType::update([&](auto& access) __attribute__((flatten)) {
      const auto found = f(access);
      if constexpr (kRestarts<SyncType>)
        if (--attempts_left_ == 0) [[unlikely]]
          give_up();
      return found;
    });
    ++result_.transactions[site];
    return result;
  }

  // All workers meet: what they wrote before is visible after.
  void barrier() noexcept { barrier_.arrive_and_wait(); }

  // `count` units of the application's work are done.
  void did(std::uint64_t count) noexcept { result_.operations += count; }

  // [0, count) in parts of nearly the same length, one per worker; this one's.
  struct Range {
    std::uint64_t begin, end;
  };
  Range part_of(std::uint64_t count) const noexcept {
    return {count * index_ / threads_, count * (index_ + 1) / threads_};
  }

 private:
  void expect_abort() noexcept { attempts_left_ = abort_every_ == 0 ? ~std::uint64_t{0} : abort_every_; }

  [[gnu::noinline, gnu::cold]] void give_up() {
    expect_abort();
    if constexpr (kRestarts<SyncType>) SyncType::restart();
  }

  const unsigned index_, threads_;
  const std::uint64_t abort_every_;
  std::uint64_t attempts_left_;
  sync::Barrier& barrier_;
  WorkerResult& result_ = worker_results()[index_];
};

}  // namespace loam::workloads::applications
