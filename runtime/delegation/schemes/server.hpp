// server: a thread of its own executes everything; request and answer share one cache line.
//   Source      ours; the idea of a server: Lozi et al., "Remote core locking", ATC 2012.
//   How         Each client has a cell: it writes the operation and sets the state to posted; the server looks at all
//               cells in turn, executes, writes the result into the same line and sets the state to done. A round trip
//               is two transfers of one line, where two lines take four.
//   Guarantees  round robin over cells; D1 to D3; several requests of a client may be in flight, in any order.
//   Cost        for the client a line that comes twice; for the server one miss a request, and a look at each cell.
//   When not    fewer processors than threads that work, or idle data: the server takes one for itself.
//   Orders      server.A, server.B, waiting.A: parts/served.hpp.
#pragma once

#include "runtime/delegation/parts/served.hpp"

namespace loam::delegation {

template <Waiting W>
class ServerAnswers {
 public:
  static constexpr std::size_t kResultBytes = Operation::kPayloadBytes;
  static constexpr std::uint32_t kGroup = ~0u;

  explicit ServerAnswers(const Settings& settings) noexcept : waiting_(settings.waiting) {}

  static std::uint32_t begin(Cell&) noexcept { return kPosted; }
  static void take_back(Cell&) noexcept {}
  static bool is_posted(const Cell&, std::uint32_t state) noexcept { return state == kPosted; }

  void execute(Cell& cell) noexcept {
    const Outcome outcome = cell.operation.execute();
    LOAM_POINT("server: before an answer");
    waiting_.tell(cell, outcome.threw ? kThrew : kDone);
  }
  static void flush(std::uint32_t) noexcept {}

  bool is_answered(const Cell& cell, std::uint32_t) const noexcept {
    const std::uint32_t state = cell.state.load(std::memory_order_acquire);  // waiting.A
    return state == kDone || state == kThrew;
  }
  Answer await(Cell& cell, std::uint32_t) const noexcept {
    std::uint32_t state = waiting_.wait(cell, kPosted);
    // The last round of a server: the answer comes at once.
    if (state == kClaimed) state = waiting_.wait(cell, kClaimed);
    return {state == kThrew, cell.operation.payload};
  }

 private:
  enum State : std::uint32_t { kIdle, kPosted, kDone, kThrew };

  const W waiting_;
};

template <Waiting W = SpinThenSleep>
class Server : public ByServer<ServerAnswers<W>> {
 public:
  static constexpr Description kDescription{.name = "server",
                                            .summary = "a dedicated thread; request and answer in one cache line",
                                            .paper = "",
                                            .guarantees = "mutual exclusion; round robin over clients",
                                            .means = Means::server};
  static constexpr bool kSleeps = W::kSleeps;

  using ByServer<ServerAnswers<W>>::ByServer;
};

}  // namespace loam::delegation
