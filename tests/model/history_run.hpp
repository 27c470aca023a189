// history_run: small random transactional runs, recorded as histories.
//   Each run: 2 or 3 threads, 2 to 6 variables on 1 to 3 records (a variable shares its record with others because it
//   lies in the same stripe, or in one that aliases), a few transactions per thread: reads, read-modify-writes, seldom
//   blind writes, seldom a cancel. All of it follows from (seed, index); with a token schedule the interleaving too.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/base/random.hpp"
#include "runtime/sync/barrier.hpp"
#include "runtime/tm/tm.hpp"
#include "tests/model/history.hpp"
#include "tests/model/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

namespace loam::tests {

struct RunShape {
  std::uint64_t seed, index;
  bool scheduled;
  unsigned threads, variables, records, switch_percent;
  bool blind;

  RunShape(std::uint64_t seed_, std::uint64_t index_) : seed(seed_), index(index_) {
    base::Random random(seed, index);
    scheduled = index % 5 < 3;
    threads = 2 + random.below(2);
    variables = 2 + random.below(5);
    records = 1 + random.below(3);
    switch_percent = 15 + random.below(70);
    blind = random.below(20) == 0;
  }
};

template <class Driver>
class HistoryRuns {
 public:
  static constexpr unsigned kThreads = 3, kVariables = 6;
  static constexpr unsigned kEagerAborts = 16;

  HistoryRuns() : start_(kThreads + 1), end_(kThreads + 1) {
    for (unsigned t = 0; t < kThreads; ++t) threads_.emplace_back([this, t] { serve(t); });
#ifdef LOAM_CHECKED
    base::point_hook.store(&HistoryRuns::reach, std::memory_order_release);
#endif
  }
  HistoryRuns(const HistoryRuns&) = delete;
  HistoryRuns& operator=(const HistoryRuns&) = delete;
  ~HistoryRuns() {
    shape_ = nullptr;
    start_.arrive_and_wait();
    for (auto& thread : threads_) thread.join();
  }

  History run(const RunShape& shape) {
    shape_ = &shape;
    clock_.store(1, std::memory_order_relaxed);  // relaxed: the barrier publishes it
    for (unsigned v = 0; v < kVariables; ++v) variable(v) = 0;
    // What was committed before is the past of every snapshot, also where commits do not advance the clock: else the
    // schedule would depend on the runs before. (By two: it stays even, should a clock be a lock as well.)
    tm::version_clock.now.fetch_add(2, std::memory_order_relaxed);
    if (shape.scheduled) schedule_.start(shape.threads, shape.seed * 1'000'003 + shape.index, shape.switch_percent);
    start_.arrive_and_wait();
    end_.arrive_and_wait();
    History all;
    for (unsigned t = 0; t < shape.threads; ++t)
      for (AttemptRecord& attempt : workers_[t].attempts) all.push_back(std::move(attempt));
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    return all;
  }

 private:
  using Word = tm::Word;

  struct Operation {
    bool write, read_first;
    unsigned variable;
  };
  struct Cancelled {};

  struct alignas(platform::kApartBytes) Worker {
    HistoryRuns* runs = nullptr;
    unsigned self = 0;
    base::Random stalls{0};
    std::vector<AttemptRecord> attempts;
    std::uint64_t next_begin = 0;
    std::uint64_t values = 0;
    unsigned aborts_in_a_row = 0;
    bool inside = false, cancelling = false;
  };
  static Worker*& current() {
    thread_local Worker* worker = nullptr;
    return worker;
  }

  // The stripes of variables: `records` groups; within a group some share the stripe, some alias with it where the map
  // has few records, else they share a granule.
  Word& variable(unsigned v) {
    const unsigned group = v % shape_->records, place = v / shape_->records;
    const std::size_t period = (tm::shared.map.mask + 1) << tm::shared.map.shift;
    auto* const first = reinterpret_cast<Word*>(space_ + group * 256 + (place % 2) * 8);
    if (place < 2 || period >= kSpaceBytes / 2) return first[place / 2 * 8];
    if (tm::shared.map.kind != "hash") return first[place / 2 * (period / sizeof(Word))];
    // A little before; a period of its own for each, since where stripes begin is not the same in all.
    Word* word = first + (place - 1) * (period / sizeof(Word));
    while (&tm::shared.map.record(word) != &tm::shared.map.record(first)) --word;
    return *word;
  }
  std::uint64_t stamp() { return clock_.fetch_add(1, std::memory_order_seq_cst); }

  [[maybe_unused]] static void reach(const char* name) {
    Worker* const worker = current();
    if (worker == nullptr || !worker->inside) return;
    if (std::string_view(name) == "tm.attaching") return;  // nobody else can go on meanwhile
    HistoryRuns& runs = *worker->runs;
    if (std::string_view(name) == "tm.aborted") {
      runs.attempt_ended(*worker, false);
      // The owner of a record may not be running: without a pause its time slice would fill the history with attempts.
      if (!runs.shape_->scheduled && ++worker->aborts_in_a_row > kEagerAborts) platform::sleep_ns(100'000);
    }
    if (runs.shape_->scheduled)
      runs.schedule_.point(worker->self);
    else
      stall(worker->stalls);
  }

  void attempt_ended(Worker& worker, bool committed) {
    AttemptRecord& attempt = worker.attempts.back();
    attempt.end = stamp();
    attempt.committed = committed;
    attempt.cancelled = worker.cancelling;
    worker.next_begin = attempt.end;
  }

  void serve(unsigned self) {
    Worker& worker = workers_[self];
    worker.runs = this;
    worker.self = self;
    current() = &worker;
    for (;;) {
      start_.arrive_and_wait();
      if (shape_ == nullptr) return;
      // The snapshot of its last commit would make the schedule depend on the runs before.
      if (shape_->scheduled) tm::thread_exit();
      worker.attempts.clear();
      if (self < shape_->threads) {
        if (shape_->scheduled) schedule_.enter(self);
        play(worker);
        if (shape_->scheduled) schedule_.leave(self);
      }
      end_.arrive_and_wait();
    }
  }

  void play(Worker& worker) {
    base::Random random(shape_->seed, (shape_->index + 1) * 8 + worker.self);
    worker.stalls = base::Random(shape_->seed + 1, (shape_->index + 1) * 8 + worker.self);
    worker.values = (std::uint64_t{worker.self} + 1) << 32;
    const unsigned transactions = 2 + random.below(shape_->blind ? 1 : 3);
    for (unsigned i = 0; i < transactions; ++i) {
      const bool read_only = random.below(5) == 0;
      const bool cancel = !read_only && random.below(10) == 0;
      std::vector<Operation> operations(1 + random.below(5));
      for (Operation& operation : operations) {
        operation.variable = random.below(shape_->variables);
        operation.write = !read_only && random.below(2) == 0;
        operation.read_first = !shape_->blind || random.below(3) != 0;
      }
      transact(worker, operations, read_only, cancel);
    }
  }

  void transact(Worker& worker, const std::vector<Operation>& operations, bool read_only, bool cancel) {
    worker.next_begin = stamp();
    worker.cancelling = false;
    worker.aborts_in_a_row = 0;
    worker.inside = true;
    const auto begin = [&] {
      AttemptRecord& attempt = worker.attempts.emplace_back();
      attempt.thread = worker.self;
      attempt.begin = worker.next_begin;
    };
    const auto look = [&](auto& tx, unsigned v) {
      const Word value = tx.read(variable(v));
      worker.attempts.back().events.push_back({EventKind::read, v, value});
    };
    if (read_only) {
      Driver::read_only([&](auto& tx) {
        begin();
        for (const Operation& operation : operations) look(tx, operation.variable);
      });
    } else {
      try {
        Driver::update([&](auto& tx) {
          begin();
          for (const Operation& operation : operations) {
            if (!operation.write || operation.read_first) look(tx, operation.variable);
            if (!operation.write) continue;
            const Word value = ++worker.values;
            tx.write(variable(operation.variable), value);
            worker.attempts.back().events.push_back({EventKind::write, operation.variable, value});
          }
          if (cancel) {
            worker.cancelling = true;
            throw Cancelled{};
          }
        });
      } catch (const Cancelled&) {
      }
    }
    if (!worker.cancelling) attempt_ended(worker, true);
    worker.inside = false;
  }

  static constexpr std::size_t kSpaceBytes = 1 << 17;
  alignas(1 << 16) static inline unsigned char space_[kSpaceBytes];

  const RunShape* shape_ = nullptr;
  TokenSchedule schedule_;
  alignas(platform::kApartBytes) std::atomic<std::uint64_t> clock_{1};
  Worker workers_[kThreads];
  sync::Barrier start_, end_;
  std::vector<std::thread> threads_;
};

}  // namespace loam::tests
