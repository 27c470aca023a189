// SchemeSync: a scheme of runtime/delegation as a synchronisation: two domains of it, so that a structure with two ends
// can have one for each; one domain of a server, which keeps a processor for itself.
//   Parameters: how threads wait, and what the scheme has beside it.
#pragma once

#include "runtime/base/check.hpp"
#include "runtime/delegation/parts/clusters.hpp"
#include "runtime/delegation/scheme_list.hpp"
#include "runtime/delegation/ticket.hpp"
#include "structures/ordered_access.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/sync.hpp"

#include <array>
#include <cstddef>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

namespace loam::workloads {

template <delegation::Scheme Scheme>
struct SchemeSync {
  static constexpr unsigned kDomains = Scheme::kDescription.means == delegation::Means::server ? 1 : 2;

  static const SyncDescription& description() {
    static constexpr std::string_view kWaits[] = {"sleep", "spin"};
    static constexpr delegation::Settings kDefaults{};
    static_assert(static_cast<std::uint32_t>(-1) == delegation::WaitingSettings::kCalibrated);
    static constexpr ParameterSpec kAll[] = {
        ParameterSpec::integer("pauses", -1, -1, 10'000, "1",
                               "pauses of the processor between two looks of one that waits; -1: as many as suit it, "
                               "reported as pauses_per_look"),
        ParameterSpec::integer("first_delay_ns", kDefaults.waiting.first_delay_ns, 0, 1'000'000, "ns",
                               "before the first look: the back-off of the paper's mp-2"),
        ParameterSpec::choice("wait", kWaits, "sleep: in the kernel, after spin_ns; spin: never"),
        ParameterSpec::integer("spin_ns", kDefaults.waiting.spin_ns, 0, 1'000'000'000, "ns",
                               "looks before it sleeps, as time"),
        ParameterSpec::integer("turn_max", kDefaults.turn_max, 1, 1 << 20, "1",
                               "operations that a combiner executes for others in one go"),
        ParameterSpec::integer("passes", kDefaults.passes, 1, 1000, "1",
                               "over the published operations, as long as each finds one"),
        ParameterSpec::integer("lists", kDefaults.clusters, 0, delegation::Clusters::kMax, "1",
                               "lists of clients; 0: one for each package of processors"),
    };
    static constexpr auto kParameters = [] {
      std::array<ParameterSpec, std::size(kAll)> own{};
      unsigned count = 0;
      for (const ParameterSpec& one : kAll)
        if (has(one.name)) own[count++] = one;
      return std::pair(own, count);
    }();
    static constexpr SyncDescription kDescription{
        .name = kDescribed.name,
        .summary = kDescribed.summary,
        .paper = kDescribed.paper,
        .kind = kDescribed.means == Means::lock ? SyncKind::lock : SyncKind::delegation,
        .guarantees = kDescribed.guarantees,
        .cpus_reserved = kDescribed.means == Means::server ? 1U : 0U,
        .parameters = std::span(kParameters.first).first(kParameters.second),
        .caution = kDescribed.has_clusters ? &of_one_package : nullptr};
    return kDescription;
  }

  static void configure(const Options& options) {
    const auto& values = options.parameters;
    const auto number = [&](std::string_view name) { return static_cast<std::uint32_t>(values.integer(name)); };
    settings.waiting = {number("pauses"), number("first_delay_ns"),
                        values.choice("wait") == "spin" ? delegation::WaitingSettings::kNeverSleep : number("spin_ns")};
    if (has("turn_max")) settings.turn_max = number("turn_max");
    if (has("passes")) settings.passes = number("passes");
    if (has("lists")) settings.clusters = number("lists");
    if (kDescribed.means == Means::server) settings.server_cpu = options.reserved_cpus()[0];
  }

  static void start() {
    try {
      for (auto& place : rooms) ::new (static_cast<void*>(place.bytes)) Scheme(settings);
    } catch (const std::exception& failure) {
      LOAM_FATAL("{}: {}", kDescribed.name, std::string_view(failure.what()));
    }
  }
  static void stop() {
    for (unsigned i = 0; i < kDomains; ++i) domain(i).~Scheme();
  }

  // Between two looks, after configure().
  static std::uint32_t pauses() { return delegation::pauses_of(settings.waiting); }

  template <class F>
  [[gnu::always_inline]] static auto read_only(F&& f) {
    return update_in(0, f);
  }
  template <class F>
  [[gnu::always_inline]] static auto update(F&& f) {
    return update_in(0, f);
  }
  // The same in one of kDomains, each of which excludes its own operations alone.
  template <class Access = structures::PlainAccess, class F>
  [[gnu::always_inline]] static auto update_in(unsigned number, F&& f) {
    return domain(number).apply([f]() mutable {
      Access access;
      return f(access);
    });
  }

  // Hands f over and returns a ticket at once.
  template <class F>
    requires(Scheme::kDescription.means == delegation::Means::server)
  static auto submit(F f) {
    return delegation::posted(domain(0).served(), [f]() mutable {
      structures::PlainAccess access;
      return f(access);
    });
  }

  static void note_block(const void*, std::size_t) {}
  static void thread_exit() { structures::PlainAccess::hand_over_counts(); }
  static void quiesce() {
    // A server has counted what it executed.
    for (unsigned i = 0; i < kDomains; ++i) domain(i).apply([] { structures::PlainAccess::hand_over_counts(); });
  }
  static std::int64_t live_blocks() {
    quiesce();
    return structures::PlainAccess::live_blocks();
  }

 private:
  using Means = delegation::Means;
  static constexpr delegation::Description kDescribed = Scheme::kDescription;

  static std::string_view of_one_package() noexcept {
    return delegation::Clusters(0).count() > 1
               ? ""
               : "one package of processors: one list, so that it is cc-synch with a lock "
                 "more; -p lists=2 makes two";
  }

  // Whether a parameter is one of this scheme's.
  static constexpr bool has(std::string_view parameter) {
    if (parameter == "turn_max") return kDescribed.means == Means::combining;
    if (parameter == "passes") return kDescribed.has_passes;
    if (parameter == "lists") return kDescribed.has_clusters;
    return true;
  }

  struct alignas(Scheme) Room {
    std::byte bytes[sizeof(Scheme)];
  };

  static Scheme& domain(unsigned number) { return *std::launder(reinterpret_cast<Scheme*>(rooms[number].bytes)); }

  inline static constinit delegation::Settings settings{};
  inline static constinit std::array<Room, kDomains> rooms{};
};

}  // namespace loam::workloads
