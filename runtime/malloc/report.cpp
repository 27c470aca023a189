#include "runtime/malloc/report.hpp"

#include "runtime/base/format.hpp"
#include "runtime/base/json_lines.hpp"
#include "runtime/malloc/entry.hpp"
#include "runtime/malloc/message.hpp"

#include <unistd.h>
#include <charconv>

namespace loam::malloc {
namespace {

// The lab reads the version from the bytes of the object (allocators/loam.toml): the words stay together there,
// although the compiler would rather have their letters as constants of instructions.
[[gnu::used, gnu::retain]] constexpr char kTitle[] = "loam malloc " LOAM_MALLOC_VERSION;
constexpr std::string_view kVersion = LOAM_MALLOC_VERSION;

constexpr std::size_t kLabelColumns = 30, kNumberColumns = 14;

// "  label ........ number unit"
void line(base::TextWriter& out, std::string_view label, std::uint64_t number, std::string_view unit) noexcept {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number);
  const std::string_view text(digits, static_cast<std::size_t>(end.ptr - digits));
  out.put("  ");
  out.put(label);
  for (std::size_t column = label.size() + text.size(); column < kLabelColumns + kNumberColumns; ++column) out.put(' ');
  out.put(text);
  out.put(' ');
  out.put(unit);
  out.put('\n');
}

constexpr std::uint64_t to_kib(std::uint64_t bytes) noexcept { return (bytes + 1023) / 1024; }

}  // namespace

std::string_view summary(std::span<char> buffer) noexcept {
  const heap::Statistics now = Heap::statistics();
  base::TextWriter out(buffer);
  out.put(kTitle);
  out.put(", process ");
  out.value(getpid());
  out.put(hardened() ? ", hardened\n" : "\n");
  line(out, "in use by spans", to_kib(now.committed_bytes), "KiB");
  line(out, "  slabs", to_kib(now.slab_bytes), "KiB");
  line(out, "  large blocks", to_kib(now.large_bytes), "KiB");
  line(out, "  large blocks", now.large_blocks, "blocks");
  line(out, "free, still backed", to_kib(now.dirty_bytes), "KiB");
  line(out, "free, given back", to_kib(now.clean_bytes), "KiB");
  line(out, "given back so far", to_kib(now.purged_bytes_total), "KiB");
  line(out, "metadata", to_kib(now.metadata_bytes), "KiB");
  line(out, "addresses reserved", to_kib(now.reserved_bytes), "KiB");
  line(out, "addresses reserved", now.areas, "areas");
  line(out, "heaps of threads", now.heaps_in_use, "in use");
  line(out, "heaps of threads", now.heaps_idle, "idle");
  line(out, "freed by other threads", now.remote_blocks_sent, "blocks");
  return out.text();
}

void write_summary(int descriptor) noexcept {
  char buffer[kReportBytes];
  say(descriptor, summary(buffer));
}

std::string_view json(std::span<char> buffer) noexcept {
  const heap::Statistics now = Heap::statistics();
  base::JsonLine line(buffer);
  line.object()
      .field("schema", 1)
      .field("allocator", "loam")
      .field("version", kVersion)
      .field("pid", getpid())
      .field("hardened", hardened())
      .field("reserved_bytes", now.reserved_bytes)
      .field("committed_bytes", now.committed_bytes)
      .field("dirty_bytes", now.dirty_bytes)
      .field("clean_bytes", now.clean_bytes)
      .field("slab_bytes", now.slab_bytes)
      .field("large_bytes", now.large_bytes)
      .field("large_blocks", now.large_blocks)
      .field("metadata_bytes", now.metadata_bytes)
      .field("purged_bytes_total", now.purged_bytes_total)
      .field("areas", now.areas)
      .field("heaps_in_use", now.heaps_in_use)
      .field("heaps_idle", now.heaps_idle)
      .field("remote_blocks_sent", now.remote_blocks_sent)
      .end();
  return line.view();
}

std::string_view xml(std::span<char> buffer) noexcept {
  const heap::Statistics now = Heap::statistics();
  return base::format_to(buffer,
                         "<malloc version=\"1\">\n"
                         "<total type=\"slab\" size=\"{}\"/>\n"
                         "<total type=\"mmap\" count=\"{}\" size=\"{}\"/>\n"
                         "<total type=\"rest\" size=\"{}\"/>\n"
                         "<system type=\"current\" size=\"{}\"/>\n"
                         "<aspace type=\"total\" size=\"{}\"/>\n"
                         "</malloc>\n",
                         now.slab_bytes, now.large_blocks, now.large_bytes, now.dirty_bytes,
                         now.committed_bytes + now.dirty_bytes + now.metadata_bytes, now.reserved_bytes);
}

}  // namespace loam::malloc
