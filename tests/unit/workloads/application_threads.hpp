// How the tests of the applications run their work: by threads of their own, over a runner of the structures' tests.
#pragma once

#include "runtime/sync/barrier.hpp"
#include "tests/unit/structures/runners.hpp"

#include <array>
#include <cstdint>
#include <thread>
#include <vector>

namespace loam::workloads {

inline constexpr std::size_t kTestSitesMax = 12;

// What an application's work() asks of a worker (workloads/applications/shared/worker.hpp).
template <class Runner>
class TestWorker {
 public:
  struct Range {
    std::uint64_t begin, end;
  };

  TestWorker(unsigned index, unsigned threads, sync::Barrier& barrier)
      : index_(index), threads_(threads), barrier_(barrier) {}

  unsigned index() const { return index_; }
  unsigned threads() const { return threads_; }
  bool is_first() const { return index_ == 0; }
  void barrier() { barrier_.arrive_and_wait(); }
  void did(std::uint64_t count) { done += count; }
  Range part_of(std::uint64_t count) const { return {count * index_ / threads_, count * (index_ + 1) / threads_}; }
  template <class F>
  auto update(unsigned site, F&& f) {
    ++sites[site];
    return Runner::update(f);
  }

  std::array<std::uint64_t, kTestSitesMax> sites{};
  std::uint64_t done = 0;

 private:
  const unsigned index_, threads_;
  sync::Barrier& barrier_;
};

// Runs application.work(worker) in `threads` threads. returns the transactions of all, by site
template <class Runner, class Application>
std::array<std::uint64_t, kTestSitesMax> run_threads(Application& application, unsigned threads) {
  sync::Barrier barrier(threads);
  std::vector<TestWorker<Runner>> workers;
  for (unsigned i = 0; i < threads; ++i) workers.emplace_back(i, threads, barrier);
  std::vector<std::thread> running;
  for (auto& worker : workers)
    running.emplace_back([&] {
      application.work(worker);
      Runner::thread_exit();
    });
  for (auto& thread : running) thread.join();
  std::array<std::uint64_t, kTestSitesMax> sites{};
  for (const auto& worker : workers)
    for (std::size_t i = 0; i < kTestSitesMax; ++i) sites[i] += worker.sites[i];
  return sites;
}

}  // namespace loam::workloads
