#include "simulator/engine/access.hpp"

#include "simulator/engine/checker.hpp"
#include "simulator/engine/transactions.hpp"
#include "simulator/engine/watchdog.hpp"

#include <algorithm>

namespace loam::simulator {

Model* model = nullptr;
LineTimes* line_times = nullptr;
std::uint64_t access_cycles = 0, instruction_milli = 0;
bool uses_transactions = false;

extern "C" {
[[gnu::visibility("default")]] std::uint64_t loam_simulator_instructions = 0;
}

void charge_instructions() noexcept {
  static std::uint64_t rest_milli = 0;
  rest_milli += loam_simulator_instructions * instruction_milli;
  loam_simulator_instructions = 0;
  now.core->clock += rest_milli / kMilli;
  rest_milli %= kMilli;
}

void access_line(std::uintptr_t address, unsigned bytes, Kind kind, std::uintptr_t pc) {
  if (checker != nullptr) [[unlikely]] {
    if (kind == Kind::atomic)
      checker->lock(address, pc);
    else
      checker->plain(address, bytes, kind == Kind::write, pc);
    return;
  }
  if (instruction_milli != 0) [[unlikely]]
    charge_instructions();
  if (now.core->clock >= now.limit) [[unlikely]] {
    model->expect({now.core->number, address, bytes, kind, now.core->clock, pc});
    scheduler.reschedule();
  }
  if (line_times != nullptr) [[unlikely]]
    line_times->access(now.core->number, address / model->machine().line_bytes, kind != Kind::read, now.core->clock);
  Outcome outcome;
  for (;;) {
    const Access one{now.core->number, address, bytes, kind, now.core->clock, pc};
    if (now.core->clock <= now.next) {
      outcome = model->access(one);
    } else if (!model->access_unless_hot(one, outcome)) {
      model->expect(one);
      // Only a core that has run ahead can be too early.
      scheduler.reschedule();
      continue;
    }
    if (!outcome.again) [[likely]]
      break;
    now.core->clock += outcome.cycles;
    if (now.core->clock >= now.limit) scheduler.reschedule();
  }
  now.core->clock += outcome.cycles + access_cycles;
  note_progress();
  if (uses_transactions) settle_access(outcome, address, bytes, kind != Kind::read);
}

void access_range(const void* start, std::size_t bytes, Kind kind, const void* pc) {
  constexpr std::uintptr_t kStepBytes = 16;
  auto address = reinterpret_cast<std::uintptr_t>(start);
  while (bytes > 0 && simulated()) {
    const std::size_t step = std::min<std::size_t>(bytes, kStepBytes - address % kStepBytes);
    access_line(address, static_cast<unsigned>(step), kind, reinterpret_cast<std::uintptr_t>(pc));
    address += step;
    bytes -= step;
  }
}

}  // namespace loam::simulator
