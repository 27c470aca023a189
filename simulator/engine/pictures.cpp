#include "simulator/engine/pictures.hpp"

#include "simulator/engine/access.hpp"
#include "simulator/engine/the_machine.hpp"
#include "simulator/model/moves.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace loam::simulator {
namespace {

constexpr std::size_t kPairsMax = 64;

struct Pair {
  unsigned from, to;
  std::uint32_t count;
};

}  // namespace

Course course_of(std::span<const LineReport> reports) noexcept {
  Course course{~std::uint64_t{0}, 0};
  for (const LineReport& report : reports) {  // clocks of cores are apart a little, so that these are not exact
    course.begin = std::min(course.begin, report.first_now);
    course.end = std::max(course.end, report.last_now + 1);
  }
  return reports.empty() ? Course{0, 0} : course;
}

void put_moves(base::JsonLine& line, const LineReport& report, const Course& course) {
  constexpr std::size_t kColumns = Course::kColumns;
  const unsigned cores = the_machine().cores;
  std::vector<std::uint32_t> arrived(cores * kColumns), between(std::size_t{cores} * cores);
  const std::uint64_t number = report.address / the_machine().line_bytes;
  for (const Moves::Move& move : model->moves()) {
    if (move.line != number) continue;
    const std::uint64_t now = std::clamp(move.now, course.begin, course.end - 1);
    const std::size_t column = (now - course.begin) * kColumns / (course.end - course.begin);
    ++arrived[move.to * kColumns + column];
    ++between[std::size_t{move.from} * cores + move.to];
  }
  line.array("arrived");
  for (unsigned core = 0; core < cores; ++core) {
    const auto own = std::span(arrived).subspan(core * kColumns, kColumns);
    if (std::all_of(own.begin(), own.end(), [](std::uint32_t count) { return count == 0; })) continue;
    line.object().field("core", core).array("counts");
    for (const std::uint32_t count : own) line.value(count);
    line.end().end();
  }
  line.end();
  std::vector<Pair> pairs;
  for (unsigned from = 0; from < cores; ++from)
    for (unsigned to = 0; to < cores; ++to)
      if (const std::uint32_t count = between[std::size_t{from} * cores + to]; count != 0)
        pairs.push_back({from, to, count});
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.count > b.count; });
  line.array("between");
  for (const Pair& pair : std::span(pairs).first(std::min(pairs.size(), kPairsMax)))
    line.object().field("from", pair.from).field("to", pair.to).field("count", pair.count).end();
  line.end();
}

}  // namespace loam::simulator
