// Turns: how many operations one thread executes without another one in between.
#pragma once

#include "structures/plain_access.hpp"
#include "workloads/harness/sync.hpp"

#include <cstdint>
#include <optional>

namespace loam::workloads::objects {

// Counted by executors, in a line that is theirs anyhow.
struct Turns {
  const void* last = nullptr;
  std::uint64_t turns = 0, operations = 0;

  void count() noexcept {
    ++operations;
    if (last == &mark) return;
    last = &mark;
    ++turns;
  }

 private:
  inline static thread_local constinit char mark = 0;
};

template <class SyncType>
bool is_transactional() {
  return SyncType::description().kind == SyncKind::transactional;
}

// A part of an object whose operations run one at a time. Each operation calls note_turn().
template <class SyncType>
class Counted {
 public:
  // one_part: several parts would have turns of their own, and a transaction that is taken back has none.
  explicit Counted(bool one_part = true) : counts_(one_part && !is_transactional<SyncType>()) {}

  std::optional<Turns> turns() const {
    if (!counts_) return std::nullopt;
    return turns_;
  }
  void forget_turns() { turns_ = {}; }
  static std::int64_t live_blocks() { return SyncType::live_blocks(); }

 protected:
  void note_turn() noexcept {
    if (counts_) turns_.count();
  }

 private:
  const bool counts_;
  Turns turns_;
};

// The same of an object that several threads are inside of.
struct Uncounted {
  static std::optional<Turns> turns() { return std::nullopt; }
  static void forget_turns() {}
  static std::int64_t live_blocks() { return structures::PlainAccess::live_blocks(); }
};

}  // namespace loam::workloads::objects
