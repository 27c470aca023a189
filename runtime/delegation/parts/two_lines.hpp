// TwoLines: request and answer have a cache line each. The server writes the answer's line and the client reads it.
//   The client numbers its requests; the request line is written by the client alone, the answer line by the server
//   alone. The state of the answer line is twice the number, plus one if the operation threw.
//   kStreaming: the server writes past its cache. Value and state are then ordered by drain_streaming().
// Orders
//   lines.A  the answer's state: release (or drain) after the payload, acquire by the client.  Without it the client
//            could read an old result.
#pragma once

#include "runtime/base/check.hpp"
#include "runtime/delegation/parts/served.hpp"

#include <cstring>

namespace loam::delegation {

template <Waiting W, bool kStreaming>
class TwoLines {
 public:
  static constexpr std::size_t kResultBytes = Operation::kPayloadBytes;
  static constexpr std::uint32_t kGroup = ~0u;

  explicit TwoLines(const Settings& settings) noexcept : waiting_(settings.waiting) {}

  static std::uint32_t begin(Cell& cell) {
    if (cell.partner == nullptr) [[unlikely]]
      cell.partner = &new_line();
    // 0 says that nothing is posted, and twice the number must fit.
    cell.toggled = cell.toggled == kNumberMax ? 1 : cell.toggled + 1;
    return cell.toggled;
  }
  static void take_back(Cell& cell) noexcept { cell.toggled = cell.toggled == 1 ? kNumberMax : cell.toggled - 1; }
  static bool is_posted(const Cell& cell, std::uint32_t number) noexcept {
    if (number == 0 || number == kClaimed) return false;
    // relaxed: the server's own.
    return cell.partner->state.load(std::memory_order_relaxed) / 2 != number;
  }

  void execute(Cell& request) noexcept {
    // A copy: the request's line stays with the client.
    Operation operation = request.operation;
    const Outcome outcome = operation.execute();
    LOAM_POINT("two lines: before an answer");
    Cell& answer = *request.partner;
    // The client's number is not in the state while a closing server has taken it: it is one after the last answer's.
    const std::uint32_t last = answer.state.load(std::memory_order_relaxed) / 2;  // relaxed: the server's own
    const std::uint32_t state = (last == kNumberMax ? 1 : last + 1) * 2 + (outcome.threw ? 1 : 0);
    if constexpr (kStreaming) {
      platform::copy_streaming(answer.operation.payload, operation.payload, outcome.result_bytes);
      platform::drain_streaming();
      platform::store_streaming(answer.state, state);
      platform::drain_streaming();  // lines.A, waiting.B: else it may lie in a buffer for long
      // relaxed: ordered by waiting.B
      if (answer.sleeping.load(std::memory_order_relaxed) != 0) [[unlikely]]
        wake(answer.state);
    } else {
      std::memcpy(answer.operation.payload, operation.payload, outcome.result_bytes);
      waiting_.tell(answer, state);  // lines.A
    }
  }
  static void flush(std::uint32_t) noexcept {}

  bool is_answered(const Cell& cell, std::uint32_t number) const noexcept {
    return cell.partner->state.load(std::memory_order_acquire) / 2 == number;  // lines.A
  }
  Answer await(Cell& cell, [[maybe_unused]] std::uint32_t number) const noexcept {
    Cell& answer = *cell.partner;
    // The last answer's state, from the client's own note: a look at the answer would take its line from the server.
    const std::uint32_t state = waiting_.wait(answer, answer.toggled);  // lines.A
    LOAM_ASSERT(state / 2 == number, "answer {} to request {}", state / 2, number);
    answer.toggled = state;
    return {state % 2 != 0, answer.operation.payload};
  }

 private:
#ifdef LOAM_CHECKED
  static constexpr std::uint32_t kNumberMax = 101;  // so that tests come to its end
#else
  static constexpr std::uint32_t kNumberMax = (1u << 31) - 2;
#endif

  static Cell& new_line() {
    Cell& line = Cells::take_from_pool();
    line.state.store(0, std::memory_order_relaxed);  // relaxed: published with the first request
    line.sleeping.store(0, std::memory_order_relaxed);
    line.toggled = 0;
    return line;
  }

  const W waiting_;
};

}  // namespace loam::delegation
