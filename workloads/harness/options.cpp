#include "workloads/harness/options.hpp"

#include "runtime/base/format.hpp"
#include "runtime/base/nearest.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace loam::workloads {
namespace {

constexpr std::string_view kFlags[] = {"--describe", "--threads", "--seed",    "--cpus", "--warmup-ms",
                                       "--blame",    "--explain", "--records", "-p"};

template <class Number>
Number number_of(std::string_view flag, std::string_view text, Number min, Number max, std::string_view hint = {}) {
  Number value{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || value < min ||
      value > max) {
    char limit[96];
    reject(flag, text, base::format_to(limit, "must be an integer from {} to {}", min, max), hint);
  }
  return value;
}

const Workload* workload_of(std::string_view name, const SyncDescription& sync) {
  char limit[256], hint[96];
  base::TextWriter text(limit);
  if (const auto* found = base::find_registered<Workload>(name)) {
    if (found->kinds.contains(sync.kind)) return found;
    text.put("runs on synchronisations of kind");
    const char* before = " ";
    for (std::size_t i = 0; i < kSyncKindNames.size(); ++i) {
      if (!found->kinds.contains(static_cast<SyncKind>(i))) continue;
      text.put(before);
      text.put(kSyncKindNames[i]);
      before = " or ";
    }
    reject("WORKLOAD", name, text.text(), base::format_to(hint, "{} is of kind {}", sync.name, name_of(sync.kind)));
  }
  text.put("no such workload; known:");
  for (const auto& workload : base::registered<Workload>()) {
    if (!workload.kinds.contains(sync.kind)) continue;
    text.put(' ');
    text.put(workload.name);
  }
  const auto near =
      base::nearest(name, base::registered<Workload>(), [](const Workload& workload) { return workload.name; });
  reject("WORKLOAD", name, text.text(),
         near.empty() ? std::string_view{} : base::format_to(hint, "did you mean {}?", near));
}

void parse_threads(std::string_view text, const SyncDescription& sync, Options& options) {
  options.threads = number_of("--threads", text, 1u, kThreadsMax);
  if (options.threads <= sync.threads_max) return;
  char limit[160];
  reject("--threads", text,
         base::format_to(limit, "{} runs at most {} thread{}", sync.name, sync.threads_max,
                         sync.threads_max == 1 ? "" : "s"),
         "another synchronisation may run more");
}

void parse_cpus(std::string_view text, Options& options) {
  const int count = platform::parse_cpu_list(text, options.cpu_list);
  if (count < 0) reject("--cpus", text, "must be a list of processor numbers", "for example 0,1 or 0-3");
  options.cpu_count = static_cast<std::size_t>(count);
  for (const unsigned number : options.cpus()) {
    if (platform::topology().contains(number)) continue;
    char limit[96], hint[128];
    base::TextWriter usable(hint);
    usable.put("usable:");
    for (const auto& cpu : platform::topology().cpus()) {
      usable.put(' ');
      usable.value(cpu.number);
    }
    reject("--cpus", text, base::format_to(limit, "this process may not run on processor {}", number), usable.text());
  }
}

void reserve_cpus(const SyncDescription& sync, Options& options) {
  options.cpus_reserved = sync.cpus_reserved;
  if (options.cpu_count > sync.cpus_reserved) return;
  char limit[160];
  reject("--cpus", "",
         base::format_to(limit, "{} keeps {} of them for itself, and there are {}", sync.name, sync.cpus_reserved,
                         options.cpu_count),
         "its threads need at least one more");
}

void parse_records(const char* text, Options& options) {
  options.records_name = text;
  if (*text != '\0' && std::strspn(text, "0123456789") == std::strlen(text)) {
    options.records = number_of("--records", text, 0, 1 << 20);
    if (::fcntl(options.records, F_GETFD) < 0)
      reject("--records", text, "no open descriptor has this number", "use a path, or inherit the descriptor");
    return;
  }
  options.records = ::open(text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (options.records < 0) reject("--records", text, "cannot be opened for writing", std::strerror(errno));
}

void parse_parameter(std::string_view text, Options& options) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) reject("-p", text, "must have the form key=value");
  Refusal refusal;
  if (options.parameters.set(text.substr(0, equals), text.substr(equals + 1), refusal)) return;
  char subject[96];
  reject(base::format_to(subject, "-p {}", text.substr(0, equals)), text.substr(equals + 1), refusal.limit,
         refusal.hint);
}

}  // namespace

void reject(std::string_view subject, std::string_view value, std::string_view limit, std::string_view hint) noexcept {
  char buffer[1024];
  base::TextWriter text({buffer, sizeof buffer - 1});
  text.put("error: ");
  text.put(subject);
  if (!value.empty()) {
    text.put('=');
    text.put(value);
  }
  text.put(": ");
  text.put(limit);
  if (!hint.empty()) {
    text.put(" (");
    text.put(hint);
    text.put(')');
  }
  const auto size = text.text().size();
  buffer[size] = '\n';
  // The result is of no use: the process ends in the next line.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, buffer, size + 1);
  ::_exit(kExitBadInput);
}

void parse_options(std::span<char* const> arguments, const SyncDescription& sync, Options& options) noexcept {
  if (arguments.empty())
    reject("WORKLOAD", "", "missing", "give a workload's name, or --describe to see what there is");
  if (std::string_view(arguments[0]) == "--describe") {
    if (arguments.size() > 1) reject("--describe", "", "takes nothing else", arguments[1]);
    return;
  }
  options.workload = workload_of(arguments[0], sync);
  options.parameters.add(options.workload->parameters);
  options.parameters.add(sync.parameters);

  for (std::size_t i = 1; i < arguments.size();) {
    const std::string_view flag = arguments[i++];
    if (flag == "--blame") {
      if (!sync.blame) {
        char limit[96];
        reject(flag, "", base::format_to(limit, "{} has no blame mode", sync.name), "leave it out");
      }
      options.blame = true;
      continue;
    }
    if (std::ranges::find(kFlags, flag) == std::end(kFlags) || flag == "--describe") {
      char hint[96];
      const auto near = base::nearest(flag, kFlags, [](std::string_view known) { return known; });
      reject(flag, "", "no such option here",
             near.empty() ? std::string_view{} : base::format_to(hint, "did you mean {}?", near));
    }
    if (i == arguments.size()) reject(flag, "", "needs a value after it");
    const char* const value = arguments[i++];
    if (flag == "--threads") {
      parse_threads(value, sync, options);
    } else if (flag == "--seed") {
      options.seed = number_of<std::uint64_t>(flag, value, 0, ~std::uint64_t{0});
    } else if (flag == "--cpus") {
      parse_cpus(value, options);
    } else if (flag == "--warmup-ms") {
      options.warmup_ms = number_of<std::uint64_t>(flag, value, 0, 3'600'000, "unit ms; default 50");
    } else if (flag == "--explain") {
      options.explain = number_of(flag, value, 1u, 1'000'000'000u, "1 keeps every abort, as far as there is room");
    } else if (flag == "--records") {
      parse_records(value, options);
    } else {
      parse_parameter(value, options);
    }
  }
  if (options.explain != 0 && !options.blame)
    reject("--explain", "", "only the aborts of a blame run can be explained", "add --blame");
  if (options.workload->check != nullptr) options.workload->check(options.parameters);
  if (options.cpu_count == 0)
    for (const auto& cpu : platform::topology().cpus()) options.cpu_list[options.cpu_count++] = cpu.number;
  reserve_cpus(sync, options);
}

}  // namespace loam::workloads
