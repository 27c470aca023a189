// Every single change of the default factors, as `explain --factors` makes them, serves threads and verifies. In a process of its
// own: each design keeps 64 GiB of addresses.
#include "tests/harness/design_rounds.hpp"

namespace loam::heap::design {
namespace {

// Each value alone, as a screening changes it; of numbers the least and the greatest.
TEST(EveryChange, HoldsWhatThreadsWroteAndVerifies) {
  unsigned tried = 0;
  for (const FactorRow& row : kFactorTable) {
    std::vector<std::string> values;
    for (const std::string_view name : row.values)
      if (!name.empty()) values.emplace_back(name);
    if (values.empty()) values = {std::to_string(row.least), std::to_string(row.most)};
    for (const std::string& value : values) {
      const std::string text = std::string(row.name) + "=" + value;
      Factors factors;
      char message[400];
      if (!apply(text, factors, message).empty()) continue;  // it does not fit
      if (factors.is(Guard::transaction) && !platform::has_transactions()) continue;
      hand_round(text, 500);
      ++tried;
    }
  }
  EXPECT_GE(tried, 35U);
}

}  // namespace
}  // namespace loam::heap::design
