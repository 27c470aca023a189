// A service in small, under whatever allocator serves this process.
//
//   service drift THREADS OPERATIONS SEED            200 MiB whose mean size drifts from 40 to 5000 bytes and back
//   service idle MIB LEAST MOST keep|end             four threads free MIB of blocks of LEAST to MOST bytes, and sleep
//   service ends COUNT joined|detached               COUNT threads, one after the other, with 33 keys each
//   service day SECONDS RATE SEED                    requests, sessions, a cache and a batch at night
//
// Prints one line for each sample: its kind, seconds since the start, live bytes, resident bytes (course.hpp); the last line is
// "cost" and seconds of processor time, kernel included.
// ends: with 2 for wrong arguments, 3 where the system or the allocator refuses
#include <sys/resource.h>

#include <algorithm>
#include <cstring>

#include "scenarios.hpp"

namespace {

using service::Course;
using service::Live;

constexpr int kWrong = 2;

int wrong() {
  std::fputs(
      "service drift THREADS OPERATIONS SEED | idle MIB LEAST MOST keep|end | ends COUNT joined|detached | day SECONDS "
      "RATE SEED\n",
      stderr);
  return kWrong;
}

double seconds(const timeval& of) { return static_cast<double>(of.tv_sec) + static_cast<double>(of.tv_usec) / 1e6; }

}  // namespace

int main(int argc, char** argv) {
  static Live live;
  static Course course(live);
  const auto number = [argv](int place) { return std::atol(argv[place]); };
  const auto asked = [argc, argv](const char* name, int arguments) {
    return argc == arguments + 2 && std::strcmp(argv[1], name) == 0;
  };
  {
    if (asked("drift", 3) && number(2) > 0 && number(2) < Live::kThreadsMax && number(3) > 0) {
      const service::Sampler sampler(course, std::chrono::milliseconds(50));
      service::drift(course, live, static_cast<int>(number(2)), number(3), static_cast<std::uint64_t>(number(4)));
    } else if (asked("idle", 4) && number(2) > 0 && number(3) >= 16 && number(4) >= number(3)) {
      service::idle(course, live, number(2), number(3), number(4), std::strcmp(argv[5], "end") == 0);
    } else if (asked("ends", 2) && number(2) >= 10) {
      service::ends(course, live, number(2), std::strcmp(argv[3], "detached") == 0);
    } else if (asked("day", 3) && std::atof(argv[2]) > 0 && std::atof(argv[3]) > 0) {
      // Some two thousand samples, however long the day is.
      const double step_ms = std::max(20.0, std::atof(argv[2]) / 2);
      const service::Sampler sampler(course, std::chrono::milliseconds(static_cast<long>(step_ms)));
      service::day(course, live, std::atof(argv[2]), std::atof(argv[3]), static_cast<std::uint64_t>(number(4)));
    } else {
      return wrong();
    }
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  course.print();
  std::printf("cost %.3f\n", seconds(used.ru_utime) + seconds(used.ru_stime));
  return 0;
}
