// Parameters of workloads and synchronisations: described in the code, given as -p key=value, recorded in every run.
// Parsing allocates nothing, because it happens before the workload's first block, whose address must not depend on it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace loam::workloads {

// How long a timed part lasts where nothing else is asked for. A simulated machine takes a minute for 50 ms of its time.
#ifdef LOAM_SIMULATED
inline constexpr std::int64_t kDurationMs = 10;
#else
inline constexpr std::int64_t kDurationMs = 250;
#endif

struct ParameterSpec {
  enum class Type { integer, choice, file };

  std::string_view name;
  Type type;
  std::int64_t min, max;                      // integer: inclusive bounds
  std::span<const std::string_view> choices;  // choice: the permitted words
  std::int64_t fallback;                      // default: the integer, or the index of the choice
  std::string_view unit, help;
  std::span<const std::string_view> labels = {};  // choice: what reports call each, in the same order; may be left out
  // What reports say in place of "name = value": {} is the value, {/100} a hundredth of it, {^} the value raised, as a power.
  std::string_view label = {};

  static constexpr ParameterSpec integer(std::string_view name, std::int64_t fallback, std::int64_t min,
                                         std::int64_t max, std::string_view unit, std::string_view help) {
    return {name, Type::integer, min, max, {}, fallback, unit, help};
  }
  // A file that the workload reads; none unless it is given. The lab identifies it by its contents.
  static constexpr ParameterSpec file(std::string_view name, std::string_view help) {
    return {name, Type::file, 0, 0, {}, 0, "", help};
  }
  // The first choice is the default. `choices` must outlive the description: a constant array.
  static constexpr ParameterSpec choice(std::string_view name, std::span<const std::string_view> choices,
                                        std::string_view help) {
    return {name, Type::choice, 0, static_cast<std::int64_t>(choices.size()) - 1, choices, 0, "", help};
  }

  constexpr ParameterSpec called(std::span<const std::string_view> words) const {
    ParameterSpec copy = *this;
    copy.labels = words;
    return copy;
  }
  constexpr ParameterSpec called(std::string_view words) const {
    ParameterSpec copy = *this;
    copy.label = words;
    return copy;
  }
  // Another choice than the first as the default.
  constexpr ParameterSpec with_default(std::size_t choice) const {
    ParameterSpec copy = *this;
    copy.fallback = static_cast<std::int64_t>(choice);
    return copy;
  }
};

constexpr ParameterSpec duration_parameter(std::int64_t fallback, std::int64_t min, std::string_view help) {
  return ParameterSpec::integer("duration_ms", fallback, min, 3'600'000, "ms", help).called("{}\u00a0ms per run");
}
inline constexpr ParameterSpec kTimedPart = duration_parameter(kDurationMs, 1, "length of the timed part");

// What a value was refused for; the caller names the subject.
struct Refusal {
  char limit[256] = {};
  char hint[96] = {};
};

class ParameterValues {
 public:
  // Takes the defaults of `specs` (which must outlive this object). Several calls share one namespace.
  void add(std::span<const ParameterSpec> specs) noexcept;

  // text: ends with a zero byte and outlives this object, as an argument of main() does
  // returns false, and fills `refusal`, if the name is unknown or the text is no permitted value
  bool set(std::string_view name, std::string_view text, Refusal& refusal) noexcept;

  // The value of a described parameter; ends the program on a name that nobody described.
  std::int64_t integer(std::string_view name) const noexcept { return at(name).value; }
  std::string_view choice(std::string_view name) const noexcept;
  // The path, which ends with a zero byte; empty if none was given.
  std::string_view file(std::string_view name) const noexcept { return at(name).path; }

  struct Item {
    const ParameterSpec* spec;
    std::int64_t value;          // choice: index
    std::string_view path = "";  // of a file
  };
  std::span<const Item> items() const noexcept { return {items_.data(), count_}; }

 private:
  static constexpr std::size_t kItemsMax = 64;

  const Item& at(std::string_view name) const noexcept;

  std::array<Item, kItemsMax> items_{};
  std::size_t count_ = 0;
};

}  // namespace loam::workloads
