#include "runtime/tm/hardware/availability.hpp"

#include "runtime/base/found.hpp"
#include "runtime/platform/machine.hpp"

#include <cstdlib>

namespace loam::tm::hardware {
namespace {

std::string_view find_reason() noexcept {
  const char* const asked = std::getenv("LOAM_HTM");
  if (asked != nullptr && std::string_view(asked) == "off")
    return "hardware transactions are switched off by LOAM_HTM=off";
  switch (platform::rtm_status()) {
    case platform::RtmStatus::absent:
      return "this processor has no hardware transactions";
    case platform::RtmStatus::listed_but_aborts:
      return "this processor lists hardware transactions, but aborts each of them";
    case platform::RtmStatus::works:
      break;
  }
  return {};
}

}  // namespace

std::string_view reason_against() noexcept {
  static constinit base::Found<std::string_view> reason;
  return reason.get(find_reason);
}

}  // namespace loam::tm::hardware
