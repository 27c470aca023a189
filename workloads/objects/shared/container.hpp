// The workloads on a container, from which somebody may take what another one has put in: queue, stack.
//   Each thread puts an element in before it takes one out, so that the container is never found empty. At the end nothing
//   may be lost or have come twice: what came in went out or is still there, by number and by sum.
//   Container(settings), put(value), take(value), rest(), turns(), forget_turns(), live_blocks().
#pragma once

#include "runtime/platform/compiler.hpp"
#include "structures/verdict.hpp"
#include "workloads/objects/shared/object.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace loam::workloads::objects {

inline constexpr ParameterSpec kElementsParameter =
    ParameterSpec::integer("elements", 0, 0, 1 << 26, "1", "in it at the start").called("{} elements");

struct ContainerSettings : Settings {
  explicit ContainerSettings(const Options& options)
      : Settings(options),
        allocates(allocates_of(options)),
        elements(static_cast<std::uint64_t>(options.parameters.integer("elements"))) {}

  Allocates allocates;
  std::uint64_t elements;
};

// An element says who put it in and as which one. The main thread, which fills the container, comes after the workers.
constexpr unsigned kSequenceBits = 48;
constexpr std::int64_t element(unsigned thread, std::uint64_t sequence) noexcept {
  return static_cast<std::int64_t>(std::uint64_t{thread} << kSequenceBits | sequence);
}

// What is added up of an element. Plain: where the order of elements is checked as well.
struct Plain {
  static constexpr std::uint64_t of(std::int64_t value) noexcept { return static_cast<std::uint64_t>(value); }
};
// So that one that is lost and one that came twice do not make up for each other.
struct Mixed {
  static constexpr std::uint64_t of(std::int64_t value) noexcept {
    return base::mix(static_cast<std::uint64_t>(value));
  }
};

// What one worker has put in and taken out, over all phases.
template <class WeightType>
struct ContainerWork : Work {
  using Weight = WeightType;

  std::uint64_t in, out;
  std::uint64_t sum_in, sum_out;  // of weights, modulo 2^64
  std::uint64_t empty;            // always a mistake

  void gave(std::int64_t value) noexcept { sum_in += Weight::of(value); }
  void took(std::int64_t value) noexcept {
    ++out;
    sum_out += Weight::of(value);
  }
  std::string_view mistake() const noexcept { return empty == 0 ? "" : "it was found empty while it held an element"; }
};

// What is left in the container at the end.
struct Rest {
  structures::Verdict verdict;
  std::uint64_t sum = 0;
};

template <class Weight, class Structure>
Rest rest_of(const Structure& structure) {
  Rest rest{structure.verify()};
  if (rest.verdict.holds()) structure.for_each([&rest](std::int64_t value) { rest.sum += Weight::of(value); });
  return rest;
}

template <class Worker>
std::string_view mistake_of(std::span<Worker> workers, std::uint64_t elements, const Rest& rest) {
  std::uint64_t in = elements, out = rest.verdict.elements, sum = 0;
  for (std::uint64_t i = 1; i <= elements; ++i) sum += Worker::Weight::of(element(kThreadsMax, i));
  for (const Worker& worker : workers) {
    if (const std::string_view found = worker.mistake(); !found.empty()) return found;
    in += worker.in;
    out += worker.out;
    sum += worker.sum_in - worker.sum_out;
  }
  if (!rest.verdict.holds()) return rest.verdict.broken;
  if (in != out) return "elements were lost or came twice: their number is wrong";
  if (sum != rest.sum) return "elements were lost or came twice: their sum is wrong";
  return "";
}

// One copy (noipa) for both phases: the warm-up warms the code that is timed. returns how many it did
template <class Container, class Worker>
LOAM_CALLED_AS_WRITTEN std::uint64_t put_and_take(Container& container, const Settings& settings, unsigned thread,
                                                  Worker& worker, base::Random& random, Pace& pace) {
  std::uint64_t operations = 0;
  // Of both kinds, the next one to be timed is the other one.
  std::uint64_t put_left = settings.latency_every / 2 + 1, take_left = settings.latency_every + 1;
  for (std::uint64_t until; (until = pace.goes_on_until(operations)) > operations;)
    for (; operations < until; operations += 2) {
      const std::int64_t in = element(thread, ++worker.in);
      worker.gave(in);
      timed(put_left, settings.latency_every, worker.ticks[0], [&] { container.put(in); });
      think(random, settings.think);
      std::int64_t out = 0;
      bool found = false;
      timed(take_left, settings.latency_every, worker.ticks[1], [&] { found = container.take(out); });
      if (found) {
        worker.took(out);
      } else {
        ++worker.empty;
      }
      think(random, settings.think);
    }
  return operations;
}

// Of one container: the element of the studies. extra: nodes that hold no element
struct Nodes {
  std::size_t bytes, extra;
};

// latencies: of put and take
template <class SyncType, class Container, class Worker, class SettingsType>
bool run_container(const Options& options, Recorder& recorder, std::span<const LatencyNames> latencies,
                   const Nodes& nodes) {
  const SettingsType settings(options);
  const Workers<Worker> workers(options.threads);
  const std::int64_t blocks_before = Container::live_blocks();
  Container container(settings);
  for (std::uint64_t i = 1; i <= settings.elements; ++i) container.put(element(kThreadsMax, i));
  container.forget_turns();
  SyncType::thread_exit();

  Team team(options, settings.duration_ms);
  drive<SyncType>(team, options, settings, workers,
                  [&](Worker& worker, unsigned thread, base::Random& random, Pace& pace) {
                    return put_and_take(container, settings, thread, worker, random, pace);
                  });

  const auto records = tm_records<SyncType>();
  SyncType::quiesce();
  const Rest rest = container.rest();
  return report(
      recorder, workers.all(),
      {.team = team,
       .settings = settings,
       .latencies = latencies,
       .tm = records,
       .turns = container.turns(),
       .pauses = pauses_of<SyncType>(),
       .mistake = mistake_of(workers.all(), settings.elements, rest),
       .live_blocks_delta = Container::live_blocks() - blocks_before - static_cast<std::int64_t>(rest.verdict.elements),
       .live_bytes = (rest.verdict.elements + nodes.extra) * nodes.bytes});
}

}  // namespace loam::workloads::objects
