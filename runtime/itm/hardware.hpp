// hardware: attempts of hybrid-norec behind this interface (runtime/tm/hardware/hybrid.hpp has the algorithm).
//   plain         The code without barriers. It frees blocks at once, and does not report its writes. So it commits
//                 only while no software transaction runs.
//   instrumented  Used beside software transactions: the code with barriers, which are plain accesses here. It notes
//                 whether it has written, and frees blocks after the commit, as software does.
//   Hardware cannot cancel, undo a part, or become irrevocable. In these cases the attempt ends, and the transaction
//   runs in software. A status of zero may come from a page of code or a symbol that only the plain code uses. So after
//   the first such abort of plain code at a place of the program, it runs there once alone, outside of attempts.
//   Cost      begin about three loads, commit one; a barrier is an indirect call.
//   When not  transactions that do not fit: their place soon stops trying (runtime/tm/hardware/fit.hpp). Transactions
//             that can be cancelled always run in software.
#pragma once

#include "runtime/tm/hardware/fit.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace loam::itm {

struct Thread;

namespace hardware {

inline constexpr std::string_view kName = "hybrid-norec";

enum class Attempt : std::uint8_t { none, plain, instrumented };

// What one thread knows about a place of the program that begins transactions.
struct Place {
  std::uintptr_t return_address = 0;
  tm::hardware::Fit fit;
  bool ran_alone = false;
};

// A direct-mapped table: a place that takes the entry of another one starts with empty knowledge.
class Places {
 public:
  Place& at(std::uintptr_t return_address) noexcept {
    Place& place = places_[return_address / 4 % places_.size()];
    if (place.return_address != return_address) [[unlikely]]
      place = {return_address, {}, false};
    return place;
  }

 private:
  std::array<Place, 256> places_;
};

// Whether the process uses it: the algorithm has its name, and the hardware works. Prints once if only the hardware is
// missing.
bool chosen(std::string_view algorithm) noexcept;

// in_hardware: an attempt has begun, and Thread::attempt is its kind. The other two say where the transaction must run.
enum class Begun : std::uint8_t { in_hardware, in_software, alone };

// Begins an outermost transaction. A hardware attempt that aborts continues inside this function and tries again. If it
// returns in_software or alone, the transaction counts as a software transaction until ended_in_software().
Begun begin(Thread& t, std::uint32_t properties, std::uintptr_t return_address) noexcept;

void ended_in_software() noexcept;

// Begins a transaction inside one that runs in hardware. returns what its code must do
std::uint32_t begin_inside(Thread& t, std::uint32_t properties) noexcept;

// Ends the outermost transaction. Does not return if it cannot commit: the attempt aborts.
void commit(Thread& t) noexcept;

// Ends the attempt, if one runs: its transaction must run in software.
void leave(const Thread& t) noexcept;

}  // namespace hardware
}  // namespace loam::itm
