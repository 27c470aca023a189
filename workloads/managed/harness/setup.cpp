#include "workloads/managed/harness/setup.hpp"

#include <algorithm>
#include <string>

namespace loam::workloads::managed {
namespace {

using P = ParameterSpec;
constexpr std::string_view kAccounts[] = {"total", "heap"};
constexpr std::string_view kContention[] = {"delay", "suicide", "backoff"};
constexpr std::string_view kChunkList[] = {"lock", "lock-free"};
constexpr std::string_view kEntries[] = {"short", "long"};
constexpr std::string_view kOpacity[] = {"checked", "unchecked"};
constexpr std::string_view kHash[] = {"on", "off"};
constexpr std::string_view kCompaction[] = {"full", "every", "off"};
constexpr std::string_view kOff[] = {"off", "on"};

constexpr std::size_t kHeapParameters = 4;
constexpr P kParameters[] = {
    P::integer("heap_percent", 300, 100, 10000, "%", "memory of heap and logs, in percent of the workload's live bytes")
        .called("heap of {/100}\u00a0× live data"),
    P::integer("memory_kib", 0, 0, std::int64_t{1} << 26, "KiB", "memory of heap and logs; 0: by heap_percent"),
    P::integer("nursery_kib", 0, 0, 1 << 20, "KiB", "of the nursery; 0: an eighth of the memory, 4 MiB at most"),
    P::choice("account", kAccounts,
              "total: logs outside of the heap count as its memory; heap: they do not, as in the paper"),
    P::integer("chunk_bytes", 8192, 256, 16376, "B", "of a chunk of a log; a multiple of 8"),
    P::integer("log_kib", 1 << 20, 64, 1 << 22, "KiB", "of one transaction's logs together, at most"),
    P::choice("chunk_list", kChunkList, "free chunks of the dedicated heap: under a lock, or lock-free"),
    P::choice("entries", kEntries, "a read in a log: short: 4 bytes, where possible; long: 16 bytes"),
    P::choice("hash", kHash, "filter of duplicates: a table of recent objects and words"),
    P::choice("bitmap", kHash, "filter of duplicates: which words of an object are in the undo log"),
    P::choice("locals", kOff, "on: words of objects that the transaction made are not logged"),
    P::choice("opacity", kOpacity, "checked: a transaction sees one state of memory; unchecked: as in the paper"),
    P::choice("compaction", kCompaction, "before which collections duplicates leave the read log"),
    P::choice("watermark", kHash, "a minor collection looks at new entries of logs only"),
    P::choice("contention", kContention, "what a transaction does that meets an owned object"),
    P::integer("alone_after", 32, 1, 1 << 20, "1", "aborts after which a transaction lets no other one begin"),
};

}  // namespace

std::span<const ParameterSpec> heap_parameters() noexcept { return std::span(kParameters).first(kHeapParameters); }
std::span<const ParameterSpec> transaction_parameters() noexcept { return kParameters; }

gc::Settings heap_settings(const Options& options, std::size_t live_bytes) {
  const auto& values = options.parameters;
  constexpr std::size_t kLeast = std::size_t{1} << 20;
  gc::Settings settings;
  const auto kib = static_cast<std::size_t>(values.integer("memory_kib"));
  const auto percent = static_cast<std::size_t>(values.integer("heap_percent"));
  settings.memory_bytes = kib != 0 ? std::max(kib << 10, kLeast) : std::max(live_bytes / 100 * percent, kLeast);
  settings.nursery_bytes = static_cast<std::size_t>(values.integer("nursery_kib")) << 10;
  if (settings.nursery_bytes != 0 && settings.nursery_bytes < gc::kLargeBytes)
    reject("-p nursery_kib", std::to_string(settings.nursery_bytes >> 10),
           "less than the " + std::to_string(gc::kLargeBytes >> 10) + " KiB of the largest object that is born in it",
           "give it more");
  if (settings.nursery_bytes > settings.memory_bytes / 2)
    reject("-p nursery_kib", std::to_string(settings.nursery_bytes >> 10),
           "more than half of the heap's memory, " + std::to_string(settings.memory_bytes >> 10) + " KiB",
           "give it less, or raise memory_kib");
  settings.backend = setup.backend;
  settings.charge_logs = values.choice("account") == "total";
  return settings;
}

gc::TxSettings tx_settings(const Options& options) {
  const auto& values = options.parameters;
  const auto is_on = [&](std::string_view name) { return values.choice(name) == "on"; };
  gc::TxSettings settings;
  settings.placement = setup.placement;
  settings.nursery = setup.nursery;
  settings.checked_allocation = setup.checked_allocation;
  settings.chunk_bytes = static_cast<std::size_t>(values.integer("chunk_bytes"));
  if (settings.chunk_bytes % 8 != 0)
    reject("-p chunk_bytes", std::to_string(settings.chunk_bytes), "no multiple of 8",
           "take " + std::to_string(settings.chunk_bytes & ~std::size_t{7}));
  settings.log_bytes_max = static_cast<std::size_t>(values.integer("log_kib")) << 10;
  settings.lock_free_chunks = values.choice("chunk_list") == "lock-free";
  settings.short_reads = values.choice("entries") == "short";
  settings.hash = is_on("hash");
  settings.bitmap = is_on("bitmap");
  settings.locals = is_on("locals");
  settings.opaque = values.choice("opacity") == "checked";
  const auto compaction = values.choice("compaction");
  settings.compaction = compaction == "every" ? gc::Compaction::every
                        : compaction == "off" ? gc::Compaction::off
                                              : gc::Compaction::full;
  settings.watermark = is_on("watermark");
  const auto contention = values.choice("contention");
  settings.contention = contention == "suicide"   ? gc::Contention::suicide
                        : contention == "backoff" ? gc::Contention::backoff
                                                  : gc::Contention::delay;
  settings.alone_after = static_cast<unsigned>(values.integer("alone_after"));
  return settings;
}

}  // namespace loam::workloads::managed
