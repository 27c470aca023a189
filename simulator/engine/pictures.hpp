// A part of the statistics: for the lines that moved most, when they came to which cores, from the model's sample.
#pragma once

#include "runtime/base/json_lines.hpp"
#include "simulator/model/counts.hpp"

#include <cstdint>
#include <span>

namespace loam::simulator {

// A part of the run's time, in so many columns.
struct Course {
  static constexpr std::size_t kColumns = 48;
  std::uint64_t begin, end;
};
// From the first transfer of one of these lines to the last: before it, a program only gets ready.
Course course_of(std::span<const LineReport> reports) noexcept;

// Adds to the object of a line: "arrived", for each core that got it how often in each column; "between", how
// often from which core to which, the most frequent first. In numbers of the sample.
void put_moves(base::JsonLine& line, const LineReport& report, const Course& course);

}  // namespace loam::simulator
