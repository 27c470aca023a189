#include "simulator/engine/statistics.hpp"

#include "runtime/base/json_lines.hpp"
#include "simulator/engine/access.hpp"
#include "simulator/engine/counters.hpp"
#include "simulator/engine/fail.hpp"
#include "simulator/engine/kernel.hpp"
#include "simulator/engine/pictures.hpp"
#include "simulator/engine/real.hpp"
#include "simulator/engine/settings.hpp"
#include "simulator/engine/the_machine.hpp"
#include "simulator/model/moves.hpp"

#include <fcntl.h>
#include <link.h>
#include <algorithm>

namespace loam::simulator {
namespace {

constexpr std::size_t kTopLines = 16, kPictures = 8;

char line_buffer[1024 * 1024];

void put_counts(base::JsonLine& line, const Counts& counts) {
  for (const Counter& counter : kCounters) line.field(counter.name, counter.value(counts));
}

// The object that code lies in, and where in it; "" names the executable.
struct Place {
  std::uintptr_t pc;
  std::uintptr_t address = 0;
  std::string_view object = "unknown";

  static int look(dl_phdr_info* info, std::size_t, void* out) {
    Place& place = *static_cast<Place*>(out);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& segment = info->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD || place.pc - info->dlpi_addr - segment.p_vaddr >= segment.p_memsz) continue;
      place.address = place.pc - info->dlpi_addr;
      place.object = info->dlpi_name;
      return 1;
    }
    return 0;
  }
};

void put_site(base::JsonLine& line, const LineReport::Site& site) {
  Place place{site.pc};
  LOAM_REAL(dl_iterate_phdr)(&Place::look, &place);
  line.object().field("object", place.object).field("address", place.address).field("count", site.count).end();
}

void put_top(base::JsonLine& line) {
  static LineReport reports[kTopLines];
  const std::size_t found = model->top_lines(LineOrder::transfers, reports);
  const auto pictured = std::span(reports).first(std::min(found, kPictures));
  const Course course = course_of(pictured);
  line.field("moves_one_in", model->moves().one_in()).field("moves_begin", course.begin).field("moves_end", course.end);
  line.array("lines");
  const std::uint64_t line_bytes = model->machine().line_bytes;
  for (const LineReport& report : std::span(reports).first(found)) {
    line.object()
        .field("address", report.address)
        .field("transfers", report.transfers)
        .field("true_sharing", report.true_sharing)
        .field("false_sharing", report.false_sharing)
        .field("aborts", report.aborts)
        .field("false_conflicts", report.false_conflicts);
    if (line_times != nullptr) line.field("shared_cycles", line_times->shared_cycles(report.address / line_bytes));
    line.array("cores");
    report.takers.for_each([&](unsigned core) { line.value(core); });
    line.end().array("sites");
    for (const auto& site : report.sites)
      if (site.count != 0) put_site(line, site);
    line.end();
    if (&report < pictured.data() + pictured.size()) put_moves(line, report, course);
    line.end();
  }
  line.end();
}

}  // namespace

void write_statistics() {
  if (settings.statistics == nullptr) return;
  model->settle();
  base::JsonLine line(line_buffer);
  const Machine& machine = the_machine();
  line.object().field("machine", std::string_view(machine.name)).field("seed", settings.seed);
  std::uint64_t cycles = 0;
  for (unsigned i = 0; i < machine.cores; ++i) cycles = std::max(cycles, scheduler.core(i).clock);
  line.field("cycles", cycles).field("switches", scheduler.switches());
  put_counts(line.object("total"), model->total());
  line.end().array("cores");
  for (unsigned i = 0; i < machine.cores; ++i) {
    line.object().field("cycles", scheduler.core(i).clock);
    put_counts(line, model->counts(i));
    line.end();
  }
  line.end();
  line.field("megahertz", machine.megahertz);
  put_top(line);
  line.end();
  const long file = kernel(SYS_open, word_of(settings.statistics), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0 || !line.write_to(static_cast<int>(file)))
    say("LOAM_SIM_STATISTICS={}: cannot be written (kernel says {})", settings.statistics, file);
}

}  // namespace loam::simulator
