// siblings: measures which processors share a core, since the topology that a virtual machine is told may be made up.
//   For every pair of processors that the process may use, until the time is up:
//   together     rate of a loop that fills the core's one multiplier, with the same loop on the other processor, over
//                its rate alone: about 1 on two cores, about 0.5 on one. Absent where either was descheduled meanwhile.
//   transfer_ns  one way of a cache line that two threads write in turn: some ten on one core, 30 to 300 between cores.
// Usage: loam-siblings MILLISECONDS; one JSON object on standard output. Pairs with the first processor come first, so
// that a machine too large for the time still shows its pattern.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <thread>

#include "runtime/platform/affinity.hpp"
#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/platform/topology.hpp"

namespace {

using namespace loam;

constexpr double kSliceS = 0.0006;    // below a scheduler's tick: most slices are not interrupted
constexpr double kUndisturbed = 0.9;  // share of a slice that both threads must have run
constexpr unsigned kRounds = 200;     // of the loop between two looks at the clock, some hundred nanoseconds

double elapsed_s() noexcept { return static_cast<double>(platform::monotonic_ns()) * 1e-9; }
double cpu_s() noexcept { return static_cast<double>(platform::thread_cpu_ns()) * 1e-9; }

struct Slice {
  double rate = 0;  // loops per second of processor time
  double busy = 0;  // processor time over elapsed time
};

// Four independent products per round: the latency of three cycles is covered, the multiplier is never idle.
template <typename Stop>
Slice multiply(Stop stop) noexcept {
  std::array<std::uint64_t, 4> products{3, 5, 7, 11};
  const double began = elapsed_s(), cpu_began = cpu_s();
  std::uint64_t loops = 0;
  do {
    for (unsigned round = 0; round < kRounds; ++round) {
      for (auto& product : products) {
        product *= 0x9e3779b97f4a7c15;
        asm volatile("" : "+r"(product));  // no vector unit, no closed form
      }
    }
    loops += kRounds;
  } while (!stop());
  const double cpu = cpu_s() - cpu_began;
  const double passed = elapsed_s() - began;
  return {cpu > 0 ? static_cast<double>(loops) / cpu : 0, passed > 0 ? cpu / passed : 0};
}

// The second thread does what `task` says until it says something else.
class Partner {
 public:
  explicit Partner(unsigned processor) : thread_([this, processor] { run(processor); }) {}
  ~Partner() {
    begin(kEnd);
    thread_.join();
  }
  Partner(const Partner&) = delete;
  Partner& operator=(const Partner&) = delete;

  // False where the second processor could not be used.
  bool ready() noexcept {
    begin(kIdle);
    return pinned_;
  }

  Slice multiply_beside(double length) noexcept {
    begin(kMultiply);
    const double until = elapsed_s() + length;
    Slice own = multiply([until] { return elapsed_s() >= until; });
    begin(kIdle);
    own.busy = std::min(own.busy, busy_);
    return own;
  }

  // Seconds of one way, the best of several batches; nothing if not one batch came to its end.
  std::optional<double> transfer(double length) noexcept {
    constexpr unsigned kTrips = 50;
    begin(kEcho);
    const double until = elapsed_s() + length;
    double best = std::numeric_limits<double>::infinity();
    std::uint32_t sent = ball_.value.load();
    while (elapsed_s() < until) {
      const double began = elapsed_s();
      for (unsigned trip = 0; trip < kTrips; ++trip) {
        ball_.value.store(++sent);  // odd: the partner's turn
        ++sent;
        for (unsigned spins = 0; ball_.value.load() != sent; ++spins) {
          if (spins % 1024 == 1023 && elapsed_s() >= until) {
            begin(kIdle);
            return best < 1 ? std::optional(best) : std::nullopt;
          }
        }
      }
      best = std::min(best, (elapsed_s() - began) / (2 * kTrips));
    }
    begin(kIdle);
    return best;
  }

 private:
  enum Task : unsigned { kIdle, kMultiply, kEcho, kEnd };

  struct alignas(platform::kApartBytes) Ball {
    std::atomic<std::uint32_t> value{0};
  };

  // Returns once the partner has left its last task and, unless that is the end, begun this one.
  void begin(Task task) noexcept {
    const unsigned ticket = (asked_.load() / 4 + 1) * 4 + task;
    asked_.store(ticket);
    asked_.notify_one();
    while (task != kEnd && begun_.load() != ticket) platform::yield();
  }

  void run(unsigned processor) noexcept {
    pinned_ = platform::pin_this_thread(processor);
    for (unsigned done = 0;;) {
      asked_.wait(done);
      const unsigned ticket = done = asked_.load();
      begun_.store(ticket);
      const auto over = [this, ticket] { return asked_.load() != ticket; };
      switch (static_cast<Task>(ticket % 4)) {
        case kMultiply:
          busy_ = multiply(over).busy;
          break;
        case kEcho:
          while (!over()) {
            const std::uint32_t seen = ball_.value.load();
            if (seen % 2 != 0) ball_.value.store(seen + 1);
          }
          break;
        case kEnd:
          return;
        case kIdle:
          break;
      }
    }
  }

  Ball ball_;
  alignas(platform::kApartBytes) std::atomic<unsigned> asked_{0};
  alignas(platform::kApartBytes) std::atomic<unsigned> begun_{0};
  double busy_ = 0;      // written before begun_ moves on, read after
  bool pinned_ = false;  // likewise
  std::thread thread_;
};

struct Pair {
  std::optional<double> together;
  std::optional<double> transfer_ns;
};

Pair measure(unsigned second, double length) {
  Partner partner(second);
  Pair pair;
  if (!partner.ready()) return pair;
  double alone = 0, beside = 0;
  const double until = elapsed_s() + length * 0.75;
  do {
    const double solo_until = elapsed_s() + kSliceS;
    const Slice solo = multiply([solo_until] { return elapsed_s() >= solo_until; });
    if (solo.busy >= kUndisturbed) alone = std::max(alone, solo.rate);
    const Slice both = partner.multiply_beside(kSliceS);
    if (both.busy >= kUndisturbed) beside = std::max(beside, both.rate);
  } while (elapsed_s() < until);
  if (alone > 0 && beside > 0) pair.together = beside / alone;
  if (const auto one_way = partner.transfer(length * 0.25)) pair.transfer_ns = *one_way * 1e9;
  return pair;
}

void print(const char* name, const std::optional<double>& value, const char* format) {
  std::printf(",\"%s\":", name);
  if (value) {
    std::printf(format, *value);
  } else {
    std::printf("null");
  }
}

}  // namespace

int main(int argc, char** argv) {
  char* end = nullptr;
  const double budget = argc == 2 ? std::strtod(argv[1], &end) / 1000 : 0;
  if (budget <= 0 || end == nullptr || *end != '\0') {
    std::fprintf(stderr, "usage: loam-siblings MILLISECONDS\n");
    return 2;
  }
  std::array<unsigned, platform::kCpusMax> numbers{};
  const std::span cpus(numbers.data(), platform::allowed_cpus(numbers));
  const double pairs = static_cast<double>(cpus.size()) * static_cast<double>(cpus.size() - 1) / 2;
  const double until = elapsed_s() + budget;
  const double each = std::clamp(budget / std::max(pairs, 1.0) * 0.9, 4 * kSliceS, 0.1);
  bool complete = true;
  std::printf("{\"pairs\":[");
  const char* separator = "";
  for (std::size_t first = 0; first < cpus.size() && complete; ++first) {
    if (!platform::pin_this_thread(cpus[first])) continue;
    for (std::size_t second = first + 1; second < cpus.size(); ++second) {
      if (elapsed_s() + each > until) {
        complete = false;
        break;
      }
      const Pair pair = measure(cpus[second], each);
      std::printf("%s{\"a\":%u,\"b\":%u", separator, cpus[first], cpus[second]);
      print("together", pair.together, "%.3f");
      print("transfer_ns", pair.transfer_ns, "%.1f");
      std::printf("}");
      separator = ",";
    }
  }
  std::printf("],\"complete\":%s}\n", complete ? "true" : "false");
  return 0;
}
