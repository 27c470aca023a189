// hardware: attempts of hybrid-norec behind this interface (runtime/tm/hardware/hybrid.hpp has the algorithm).
//   plain       The code without barriers. It frees blocks at once, and does not report its writes. So it commits only
//               while no software transaction runs.
//   instrumented  Beside software transactions: the code with barriers, which are plain accesses here. It notes whether
//               it has written, and frees blocks after the commit, as software does.
//   Hardware cannot cancel, undo a part, or become irrevocable: then the attempt ends, and the transaction runs in
//   software. A status of zero may come from a page of code or a symbol that only the plain code uses. So at the first
//   such abort a place of the program runs the plain code alone, outside of attempts.
//   Cost      begin about three loads, commit one; a barrier is an indirect call.
//   When not  transactions that do not fit, which soon do not try (runtime/tm/hardware/fit.hpp); those that can be
//             cancelled run in software always.
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

// One place of the program that begins transactions, as one thread has seen it.
struct Place {
  std::uintptr_t return_address = 0;
  tm::hardware::Fit fit;
  bool ran_alone = false;
};

// Where two fall together, the later one begins anew.
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

// Whether the process uses it: the algorithm's name, and hardware that works. Says once where only the second is missing.
bool chosen(std::string_view algorithm) noexcept;

// hardware: it has begun, Thread::attempt says how; otherwise where the transaction is to run.
enum class Begun : std::uint8_t { in_hardware, in_software, alone };

// Begins an outermost transaction, or a try of it, which comes back here. Where it says in_software or alone, the
// transaction is counted among those of software until ended_in_software().
Begun begin(Thread& t, std::uint32_t properties, std::uintptr_t return_address) noexcept;

void ended_in_software() noexcept;

// A transaction within one that runs in hardware. returns what its code is to do
std::uint32_t begin_inside(Thread& t, std::uint32_t properties) noexcept;

// The end of the outermost one. Does not come back where it cannot commit.
void commit(Thread& t) noexcept;

// Ends the attempt, if one runs: its transaction is one for software.
void leave(const Thread& t) noexcept;

}  // namespace hardware
}  // namespace loam::itm
