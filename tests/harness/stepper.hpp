// Stepper: a thread that runs one transaction, one operation at a time, as the test says.
//   Stepper<Driver> a(Kind::update), b(Kind::update);
//   a.begin(); a.write(x, 1); b.begin(); b.read(x); a.commit(); b.commit();
//   Each call returns once the operation has ended, the attempt has aborted at it, or its thread has had its chance
//   (chance.hpp): then the operation waits, and goes on waiting while the test steps other threads. After an abort, and
//   after a wait that has ended, the transaction is given up without effect; further calls do nothing.
#pragma once

#include "runtime/platform/machine.hpp"
#include "runtime/tm/types.hpp"
#include "tests/harness/chance.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace loam::tests {

enum class Kind { update, read_only };
enum class Step { none, begin, read, write, commit };
enum class Fate { running, committed, aborted, waits };  // of the transaction so far; aborted, waits: at which step

constexpr const char* name_of(Step step) {
  constexpr const char* kNames[] = {"nothing", "begin", "read", "write", "commit"};
  return kNames[static_cast<int>(step)];
}

template <class Driver>
class Stepper {
 public:
  explicit Stepper(Kind kind) : kind_(kind), thread_([this] { run(); }) {}
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;
  ~Stepper() { finish(); }

  void begin() { step(Step::begin, nullptr, 0); }
  // The value, if the read has ended.
  tm::Word read(const tm::Word& word) {
    step(Step::read, const_cast<tm::Word*>(&word), 0);
    return value_;
  }
  void write(tm::Word& word, tm::Word value) { step(Step::write, &word, value); }
  // Adds to what was read last.
  void add(tm::Word& word, tm::Word addend) { step(Step::write, &word, value_ + addend); }
  void commit() { step(Step::commit, nullptr, 0); }

  Fate fate() const { return fate_; }
  Step at() const { return at_; }  // the step at which it aborted or waits

  // Gives up what still runs and waits for the thread. A step that waits must end now that others have: call it for
  // those that do not wait first.
  void finish() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard guard(mutex_);
      give_up_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  struct GivenUp {};

  void step(Step step, tm::Word* word, tm::Word value) {
    if (fate_ != Fate::running) return;
    std::unique_lock lock(mutex_);
    wanted_ = step, word_ = word, operand_ = value;
    changed_.notify_all();
    const auto is_over = [&] { return wanted_ == Step::none || gone_; };
    Chance chance(thread_.native_handle(), number_);
    bool ended = false;
    do ended = changed_.wait_for(lock, Chance::kSlice, is_over);
    while (!ended && !chance.had());
    at_ = step;
    if (!ended) {
      fate_ = Fate::waits;
      give_up_ = true;
    } else if (aborted_) {
      fate_ = Fate::aborted;
    } else if (gone_) {
      fate_ = Fate::committed;
    } else if (step == Step::read) {
      value_ = result_;
    }
  }

  // The next step to take; Step::none: none, give up.
  Step next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return wanted_ != Step::none || give_up_; });
    return give_up_ ? Step::none : wanted_;
  }
  void done() {
    const std::lock_guard guard(mutex_);
    wanted_ = Step::none;
    changed_.notify_all();
  }

  void run() {
    number_ = platform::thread_id();
    if (next() == Step::begin) {
      bool again = false;
      const auto body = [&](auto& tx) {
        if (std::exchange(again, true)) {
          aborted_ = true;
          throw GivenUp{};
        }
        done();
        steps(tx);
      };
      try {
        if (kind_ == Kind::read_only)
          Driver::read_only(body);
        else
          Driver::update(body);
      } catch (const GivenUp&) {
      }
    }
    const std::lock_guard guard(mutex_);
    gone_ = true;
    changed_.notify_all();
  }

  template <class Tx>
  void steps(Tx& tx) {
    for (;;) {
      switch (next()) {
        case Step::read:
          result_ = tx.read(*word_);
          break;
        case Step::write:
          if constexpr (requires { tx.write(*word_, operand_); }) tx.write(*word_, operand_);
          break;
        case Step::commit:
          return;
        case Step::begin:
        case Step::none:
          throw GivenUp{};
      }
      done();
    }
  }

  const Kind kind_;
  // Of the test's thread.
  Fate fate_ = Fate::running;
  Step at_ = Step::none;
  tm::Word value_ = 0;
  // Handed over under the mutex.
  std::mutex mutex_;
  std::condition_variable changed_;
  Step wanted_ = Step::none;
  tm::Word* word_ = nullptr;
  tm::Word operand_ = 0, result_ = 0;
  bool give_up_ = false, aborted_ = false, gone_ = false;
  std::atomic<long> number_{0};
  std::thread thread_;
};

}  // namespace loam::tests
