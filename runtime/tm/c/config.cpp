#include "runtime/tm/c/config.hpp"

#include "runtime/base/format.hpp"
#include "runtime/base/nearest.hpp"
#include "runtime/base/points.hpp"
#include "runtime/tm/algorithms.hpp"
#include "runtime/tm/attempts/contention.hpp"
#include "runtime/tm/c/dispatch.hpp"
#include "runtime/tm/c/inlined.hpp"
#include "runtime/tm/tm.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include <unistd.h>

namespace loam::tm {
namespace [[gnu::visibility("hidden")]] open {
namespace {

constexpr std::string_view kMappings[] = {"table", "shadow", "hash"};  // as tm::Mapping
constexpr std::string_view kPrivatizations[] = {"none", "commit", "shared"};

[[gnu::tls_model("initial-exec")]] thread_local constinit char error[320] = "";

template <class... Values>
int complain(int code, std::string_view format, const Values&... values) noexcept {
  const std::string_view text = base::format_to(std::span(error, sizeof error - 1), format, values...);
  error[text.size()] = '\0';
  return code;
}

// "subject: there is no such KIND; did you mean NAME? There are ..."
void complain_of(std::string_view subject, std::string_view kind, std::string_view wanted,
                 std::span<const std::string_view> names) noexcept {
  char list[200];
  base::TextWriter all(list);
  for (const std::string_view each : names) {
    if (each != names.front()) all.put(", ");
    all.put(each);
  }
  const std::string_view near = base::nearest(wanted, names, [](std::string_view each) { return each; });
  if (near.empty())
    complain(LOAM_UNKNOWN_NAME, "{}: there is no such {}; there are {}", subject, kind, all.text());
  else
    complain(LOAM_UNKNOWN_NAME, "{}: there is no such {}; did you mean {}? There are {}", subject, kind, near,
             all.text());
}

// The index of a name, or nothing after a complaint.
std::optional<std::size_t> index_of(std::string_view subject, std::string_view wanted,
                                    std::span<const std::string_view> names) {
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found != names.end()) return found - names.begin();
  char text[200];
  complain_of(base::format_to(text, "{}={}", subject, wanted), "one", wanted, names);
  return std::nullopt;
}
std::optional<std::size_t> index_of(std::string_view subject, const char* name,
                                    std::span<const std::string_view> names) {
  return index_of(subject, std::string_view(name == nullptr ? "" : name), names);
}

bool in_range(std::string_view subject, unsigned value, unsigned min, unsigned max) noexcept {
  if (value >= min && value <= max) return true;
  complain(LOAM_OUT_OF_RANGE, "{}={}: must be {} to {}", subject, value, min, max);
  return false;
}

// What a configuration says, in the runtime's terms. code: LOAM_OK, or another one after a complaint
struct Checked {
  int code;
  const Operations* operations = nullptr;
  Config config{};
};

Checked check(const loam_config& config) noexcept {
  const auto algorithm = index_of("algorithm", config.algorithm, Algorithms::kNames);
  if (!algorithm) return {LOAM_UNKNOWN_NAME};
  if (const auto only = inlined_algorithm(); !only.empty() && only != config.algorithm)
    return {
        complain(LOAM_OUT_OF_RANGE,
                 "algorithm={}: accesses of this program are compiled for {}; build it without LOAM_TM_ALGORITHM to "
                 "choose",
                 config.algorithm, only)};
  const auto mapping = index_of("mapping", config.mapping, kMappings);
  if (!mapping) return {LOAM_UNKNOWN_NAME};
  bool applies = static_cast<Mapping>(*mapping) != Mapping::hash;
  Algorithms::with<false>(config.algorithm, [&]<class A>() { applies |= knows_hash<A>(); });
  if (!applies)
    return {complain(LOAM_OUT_OF_RANGE, "mapping=hash: {} finds records by shift and mask; etl-wb-hash knows it",
                     config.algorithm)};
  const auto manager = index_of("manager", config.manager, contention::kManagerNames);
  if (!manager) return {LOAM_UNKNOWN_NAME};
  const auto privatization = index_of("privatization", config.privatization, kPrivatizations);
  if (!privatization) return {LOAM_UNKNOWN_NAME};
  if (!in_range("shift", config.shift, kShiftMin, kShiftMax) ||
      !in_range("records_log2", config.records_log2, kRecordsLog2Min, kRecordsLog2Max))
    return {LOAM_OUT_OF_RANGE};
  Checked checked{LOAM_OK, operations_of(config.algorithm)};
  checked.config.mapping = static_cast<Mapping>(*mapping);
  checked.config.shift = config.shift;
  checked.config.records_log2 = config.records_log2;
  checked.config.adaptive = config.adaptive != 0;
  checked.config.manager = static_cast<Manager>(*manager);
  checked.config.privatization = static_cast<Privatization>(*privatization);
  checked.config.serialise_after = config.serialise_after;
  return checked;
}

loam_config built_in() noexcept {
  const Config defaults;
  loam_config config{};
  const std::string_view only = inlined_algorithm();
  config.algorithm = only.empty() ? DefaultAlgorithm::kDescription.name.data() : only.data();
  config.mapping = kMappings[static_cast<std::size_t>(defaults.mapping)].data();
  config.shift = defaults.shift;
  config.records_log2 = defaults.records_log2;
  config.adaptive = defaults.adaptive;
  config.manager = contention::kManagerNames[static_cast<std::size_t>(defaults.manager)].data();
  config.privatization = kPrivatizations[static_cast<std::size_t>(defaults.privatization)].data();
  config.serialise_after = defaults.serialise_after;
  return config;
}

// ---- a text of settings

// One key of loam_config: a name among `names`, or a number.
struct Key {
  std::string_view name;
  const char* loam_config::* text = nullptr;
  std::span<const std::string_view> names = {};
  unsigned loam_config::* number = nullptr;
  unsigned min = 0, max = ~0u;
};
constexpr Key kKeys[] = {
    {"algorithm", &loam_config::algorithm, Algorithms::kNames},
    {"mapping", &loam_config::mapping, kMappings},
    {"manager", &loam_config::manager, contention::kManagerNames},
    {"privatization", &loam_config::privatization, kPrivatizations},
    {"shift", nullptr, {}, &loam_config::shift, kShiftMin, kShiftMax},
    {"records_log2", nullptr, {}, &loam_config::records_log2, kRecordsLog2Min, kRecordsLog2Max},
    {"serialise_after", nullptr, {}, &loam_config::serialise_after},
    {"adaptive", nullptr, {}, nullptr, 0, 1},
};

std::optional<unsigned> number_of(std::string_view key, std::string_view value) noexcept {
  unsigned number = 0;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
  if (read.ec == std::errc{} && read.ptr == value.data() + value.size()) return number;
  complain(LOAM_OUT_OF_RANGE, "{}={}: must be a whole number", key, value);
  return std::nullopt;
}

// returns false after a complaint
bool set(loam_config& config, std::string_view name, std::string_view value) noexcept {
  const auto key = std::find_if(std::begin(kKeys), std::end(kKeys), [=](const Key& each) { return each.name == name; });
  if (key == std::end(kKeys)) {
    std::string_view names[std::size(kKeys)];
    std::transform(std::begin(kKeys), std::end(kKeys), names, [](const Key& each) { return each.name; });
    complain_of(name, "setting", name, names);
    return false;
  }
  if (key->text != nullptr) {
    const auto index = index_of(name, value, key->names);
    if (!index) return false;
    config.*key->text = key->names[*index].data();  // a literal, which ends in 0
    return true;
  }
  const auto number = number_of(name, value);
  if (!number || !in_range(name, *number, key->min, key->max)) return false;
  if (key->number != nullptr)
    config.*key->number = *number;
  else
    config.adaptive = static_cast<int>(*number);
  return true;
}

void say(std::string_view sentence) noexcept {
  char line[400];
  const auto text = base::format_to(line, "loam tm: LOAM_TM: {}; ignored\n", sentence);
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

const char* environment() noexcept { return ::secure_getenv("LOAM_TM"); }

}  // namespace

void read_settings(loam_config& config, std::string_view text, void (*complaint)(std::string_view)) noexcept {
  const loam_config before = config;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    if (equals == std::string_view::npos) {
      complain(LOAM_UNKNOWN_NAME, "{}: must have the form key=value", pair);
      complaint(error);
    } else if (!set(config, pair.substr(0, equals), pair.substr(equals + 1))) {
      complaint(error);
    }
  }
  // Each may be right, and the whole not.
  if (check(config).code == LOAM_OK) return;
  complaint(error);
  config = before;
}

const char* last_error() noexcept { return error; }

loam_config default_config() noexcept {
  static constinit std::atomic<bool> said{false};
  loam_config config = built_in();
  if (const char* const text = environment(); text != nullptr)
    // relaxed: of the threads that read it at the same time one complains.
    read_settings(config, text, said.exchange(true, std::memory_order_relaxed) ? [](std::string_view) {} : say);
  return config;
}

int configure(const loam_config& config) noexcept {
  const Checked checked = check(config);
  if (checked.code != LOAM_OK) return checked.code;
  if (!choose(*checked.operations))
    return complain(LOAM_TOO_LATE, "loam_configure() after the first transaction of the process");
  tm::configure(checked.config);
  return complain(LOAM_OK, "");
}

void configure_by_environment() noexcept {
  static constinit bool done = false;  // guarded by lock_setup(), for which a fork waits
  lock_setup();
  if (!std::exchange(done, true) && environment() != nullptr) {
    LOAM_POINT("tm.configuring");
    const Checked checked = check(default_config());
    if (checked.code == LOAM_OK && choose(*checked.operations)) configure_while_locked(checked.config);
  }
  unlock_setup();
}

}  // namespace open
}  // namespace loam::tm
