// cache-scratch: passive false sharing, which a program makes and an allocator may keep up.
//   Source Berger et al., "Hoard", ASPLOS 2000.   The main thread allocates small blocks one after the other, which so
//   share cache lines, and hands them to the threads in turn. Each thread frees what it was handed, and from then on
//   allocates, writes and frees blocks of its own (cache_lines.hpp). An allocator that gives a freed block to the
//   thread that freed it keeps the lines shared for ever. Metric: blocks per second.
#include "workloads/allocation/shared/cache_lines.hpp"

namespace loam::workloads::allocation {
namespace {

bool run(const Options& options, Recorder& recorder) {
  const CacheLineSettings settings(options.parameters);
  const auto ledgers = open_ledgers(options.threads);
  const PageArray<Held> handed(options.threads * settings.blocks, "the blocks of cache-scratch");
  // Neighbours go to different threads.
  for (std::size_t i = 0; i < handed.span().size(); ++i)
    handed[i] = ledgers[i % options.threads].allocate(settings.size);
  return run_cache_lines(options, recorder, settings, ledgers, [&](unsigned thread) {
    for (std::size_t i = thread; i < handed.span().size(); i += options.threads) ledgers[thread].release(handed[i]);
  });
}

const base::Registration<Workload> registration{cache_lines_workload(
    "cache-scratch", "passive false sharing: threads free and reuse neighbouring blocks from the main thread", run)};

}  // namespace
}  // namespace loam::workloads::allocation
