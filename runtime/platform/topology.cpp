#include "runtime/platform/topology.hpp"

#include "runtime/base/format.hpp"
#include "runtime/base/points.hpp"
#include "runtime/platform/affinity.hpp"
#include "runtime/platform/pages.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <charconv>
#include <new>
#include <tuple>

namespace loam::platform {
namespace {

// The number in the first line of `<sysfs>/cpu<number>/topology/<leaf>`, or `otherwise`.
std::uint32_t read_number(const char* sysfs, unsigned number, std::string_view leaf, std::uint32_t otherwise) noexcept {
  char path[512];
  const auto name = base::format_to(path, "{}/cpu{}/topology/{}", std::string_view(sysfs), number, leaf);
  if (name.size() >= sizeof path) return otherwise;
  path[name.size()] = '\0';
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return otherwise;
  char text[32];
  const auto size = ::read(file, text, sizeof text);
  ::close(file);
  std::uint32_t value = 0;
  if (size <= 0 || std::from_chars(text, text + size, value).ec != std::errc{}) return otherwise;
  return value;
}

}  // namespace

bool Topology::contains(unsigned number) const noexcept {
  return std::ranges::any_of(cpus(), [&](const Cpu& cpu) { return cpu.number == number; });
}

void Topology::read(const char* sysfs, std::span<const unsigned> allowed) noexcept {
  count_ = static_cast<unsigned>(std::min<std::size_t>(allowed.size(), kCpusMax));
  const auto all = std::span(cpus_).first(count_);
  for (unsigned i = 0; i < count_; ++i) {
    const unsigned number = allowed[i];
    all[i] = {.number = number,
              .package = read_number(sysfs, number, "physical_package_id", 0),
              .core = read_number(sysfs, number, "core_id", number),
              .sibling = 0};
  }
  std::ranges::sort(all, {}, [](const Cpu& cpu) { return std::tuple(cpu.package, cpu.core, cpu.number); });
  for (unsigned i = 1; i < count_; ++i)
    if (all[i].package == all[i - 1].package && all[i].core == all[i - 1].core) all[i].sibling = all[i - 1].sibling + 1;
  std::ranges::sort(all, {}, [](const Cpu& cpu) { return std::tuple(cpu.sibling, cpu.package, cpu.core, cpu.number); });
}

const Topology& topology() noexcept {
  // topology.A: a thread that loads the pointer sees the topology that it points to.
  static constinit std::atomic<const Topology*> known{nullptr};
  if (const Topology* const there = known.load(std::memory_order_acquire)) return *there;  // topology.A
  // No thread waits while another one reads the topology: the child of a fork in the middle of that would wait for
  // ever. The first thread reads into static storage, because 16 KiB are too much for small stacks. Threads that come
  // before it is done map pages.
  static constinit Topology first;
  static constinit std::atomic<bool> first_is_taken{false};
  Topology* own = &first;
  // relaxed: it only decides which thread writes into `first`
  const bool mapped = first_is_taken.exchange(true, std::memory_order_relaxed);
  if (mapped) own = ::new (map_lazy_or_die(sizeof(Topology), "list of processors", {.huge_pages = false})) Topology;
  std::array<unsigned, kCpusMax> allowed;
  own->read("/sys/devices/system/cpu", std::span(allowed).first(allowed_cpus(allowed)));
  LOAM_POINT("platform.topology");
  const Topology* others = nullptr;
  if (known.compare_exchange_strong(others, own, std::memory_order_acq_rel)) return *own;  // topology.A
  if (mapped) unmap(own, sizeof(Topology));
  return *others;
}

int parse_cpu_list(std::string_view text, std::span<unsigned> out) noexcept {
  int count = 0;
  const char *at = text.data(), *const end = at + text.size();
  for (bool more = true; more;) {
    unsigned first = 0, last = 0;
    auto parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc{}) return -1;
    at = parsed.ptr;
    last = first;
    if (at != end && *at == '-') {
      parsed = std::from_chars(at + 1, end, last);
      if (parsed.ec != std::errc{}) return -1;
      at = parsed.ptr;
    }
    if (last < first || last >= kCpusMax) return -1;
    for (unsigned number = first; number <= last; ++number) {
      if (static_cast<std::size_t>(count) == out.size()) return -1;
      out[static_cast<std::size_t>(count++)] = number;
    }
    more = at != end;
    if (more && *at++ != ',') return -1;
  }
  return count;
}

}  // namespace loam::platform
