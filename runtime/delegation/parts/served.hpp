// Served: a domain whose operations a server's thread executes. How the answer travels is Answers, a part of each scheme:
//   std::uint32_t begin(Cell&)                 the client's next request: the number that says it is posted
//   void take_back(Cell&)                      that one was never looked at
//   bool is_posted(const Cell&, number) const  for the server: whether this number asks for something
//   void execute(Cell&)                        by the server: executes and answers, or keeps the answer for flush()
//   void flush(place)                          by the server, after each place that is the last of a group
//   Answer await(Cell&, number)                by the client
//   kResultBytes, kGroup                       results that come by value; places in a group
// Orders
//   server.B  state, posted: release by the client (announce_light), acquire by the server.  Without it the server could
//             run an old operation.
//   waiting.A  the answer: the result, and all that the operation did.   server.A  is in parts/server_thread.hpp.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/delegation/parts/executing.hpp"
#include "runtime/delegation/parts/roster.hpp"
#include "runtime/delegation/parts/server_thread.hpp"
#include "runtime/delegation/waiting.hpp"

#include <cstddef>

namespace loam::delegation {

struct Answer {
  bool threw;
  std::byte* payload;
};

// Of a request that a closing server has claimed, and that its client may not take back. No scheme posts this number.
inline constexpr std::uint32_t kClaimed = ~0u;

template <class Answers>
class Served {
 public:
  static constexpr std::size_t kResultBytes = Answers::kResultBytes;

  explicit Served(const Settings& settings) : answers_(settings), thread_(this, &Served::round, settings) {}

  void stop() noexcept { thread_.stop(); }

  bool is_executing_here() const noexcept { return Executing::here(this); }

  template <class F>
  std::invoke_result_t<F&> apply(F& f) {
    if constexpr (!kIsOnBehalf<F>) {
      if (Executing::anything()) [[unlikely]]
        return apply_on_behalf(*this, f);
    }
    Call<F, kResultBytes> call(f);
    Cell& cell = roster_.take();
    const GiveBack give_back{roster_, cell};
    call.write(cell.operation);
    const std::uint32_t number = post(cell);
    const Answer answer = answers_.await(cell, number);
    return call.take(answer.threw, answer.payload);
  }

  // The parts of apply(), for requests of which several are in flight: lend(), write the operation, post(), await(),
  // give_back().
  Cell& lend() { return roster_.take(); }
  void give_back(Cell& cell) noexcept { roster_.give(cell); }
  std::uint32_t post(Cell& cell) {
    const std::uint32_t number = answers_.begin(cell);
    platform::announce_light(cell.state, number);  // server.B, server.A
    LOAM_POINT("served: posted");
    if (!thread_.attend()) [[unlikely]]
      withdraw(cell, number);
    return number;
  }
  // Throws Stopped where the server is in the parent of a fork and has not answered before.
  Answer await(Cell& cell, std::uint32_t number) {
    if (thread_.is_gone() && !answers_.is_answered(cell, number)) [[unlikely]]
      throw Stopped();
    return answers_.await(cell, number);
  }
  // Whether await() would return or throw at once.
  bool is_answered(Cell& cell, std::uint32_t number) const noexcept {
    return answers_.is_answered(cell, number) || thread_.is_gone();
  }

 private:
  struct GiveBack {
    ~GiveBack() { roster.give(cell); }
    Roster& roster;
    Cell& cell;
  };

  // The server has closed: it executes what it has claimed, and looks at nothing else any more.
  void withdraw(Cell& cell, std::uint32_t number) {
    // relaxed: claimed before the server closed (server.C).
    if (cell.state.load(std::memory_order_relaxed) != number) return;
    // It may have been executed in the last round before the server closed (server.C).
    if (answers_.is_answered(cell, number)) return;
    cell.state.store(0, std::memory_order_relaxed);  // relaxed: nobody looks at it
    answers_.take_back(cell);
    throw Stopped();
  }

  static bool round(void* served, ServerThread::Pass pass) noexcept {
    auto& self = *static_cast<Served*>(served);
    bool found = false;
    const std::uint32_t end = self.roster_.high();
    for (std::uint32_t place = 0; place < end; ++place) {
      Cell& cell = self.roster_.at(place);
      const std::uint32_t number = cell.state.load(std::memory_order_acquire);  // server.B
      const bool finishes = pass == ServerThread::Pass::finish;
      if (finishes ? number == kClaimed : self.answers_.is_posted(cell, number)) {
        found = true;
        if (pass == ServerThread::Pass::claim)
          cell.state.store(kClaimed, std::memory_order_relaxed);  // relaxed: ordered by server.C
        else
          self.answers_.execute(cell);
      }
      if (place % Answers::kGroup == Answers::kGroup - 1 || place == end - 1) self.answers_.flush(place);
    }
    return found;
  }

  Answers answers_;
  Roster roster_;
  ServerThread thread_;  // the last: it begins to look at the others
};

// What every scheme with a server shows of it.
template <class Answers>
class ByServer {
 public:
  explicit ByServer(const Settings& settings = {}) : served_(settings) {}

  // Executes what is posted, refuses what comes later. By one thread.
  void stop() noexcept { served_.stop(); }

  template <class F>
  std::invoke_result_t<F&> apply(F&& f) {
    return served_.apply(f);
  }

  Served<Answers>& served() noexcept { return served_; }

 private:
  Served<Answers> served_;
};

}  // namespace loam::delegation
