// cache-thrash: active false sharing, which an allocator makes by giving one cache line to two threads.
//   Source Berger et al., "Hoard", ASPLOS 2000.   Each thread allocates small blocks, writes them many times, and frees
//   them (cache_lines.hpp); threads exchange nothing. Metric: blocks per second.
//   Beside one thread's rate it shows what sharing lines costs: without sharing, n threads do n times as much.
#include "workloads/allocation/shared/cache_lines.hpp"

namespace loam::workloads::allocation {
namespace {

bool run(const Options& options, Recorder& recorder) {
  const CacheLineSettings settings(options.parameters);
  return run_cache_lines(options, recorder, settings, open_ledgers(options.threads), [](unsigned) {});
}

const base::Registration<Workload> registration{
    cache_lines_workload("cache-thrash", "active false sharing: threads write small blocks of their own", run)};

}  // namespace
}  // namespace loam::workloads::allocation
