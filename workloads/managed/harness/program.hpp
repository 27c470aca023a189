// A program on the managed heap, run by a team of threads: what is the same for all of them.
//   struct Program {
//     using Settings = ...;                                      // read from the parameters
//     static std::size_t live_bytes(const Settings&, unsigned threads);
//     Program(Session&, const Settings&, const Options&);        // without objects yet
//     void build(Worker&);                                       // before the timed part, by one thread
//     std::uint64_t work(Worker&, unsigned thread, Pace&);       // timed; returns the transactions that it ran
//     const char* check(Worker&);                                // after it; what is wrong, or null
//     void add_to(base::JsonLine&);                              // its own metrics
//     void record_more(Recorder&) const;                         // optional: records of its own
//   };
#pragma once

#include "workloads/harness/options.hpp"
#include "workloads/harness/recorder.hpp"
#include "workloads/harness/team.hpp"
#include "workloads/managed/harness/access.hpp"
#include "workloads/managed/harness/report.hpp"

#include <cstdint>
#include <optional>

namespace loam::workloads::managed {

struct alignas(platform::kApartBytes) TransactionCount {
  std::uint64_t transactions = 0;
};
inline constinit TransactionCount transaction_counts[kThreadsMax];

// Ends the program where the heap is too small: that is input, not a fault.
template <class F>
void or_refuse_memory(F&& body) {
  try {
    body();
  } catch (const gc::OutOfMemory& full) {
    reject("-p memory_kib", "", full.what());
  } catch (const gc::LogsTooLong& logs) {
    reject("-p log_kib", "", logs.what(), "raise log_kib");
  }
}

// Of a program whose threads share objects.
inline void refuse_unsynchronised(const Options& options) {
  if (options.threads == 1) return;
  if (!kTransactions && !kLock)
    reject("--threads", "", "gc-raw synchronises nothing, and the threads of this program share objects",
           "use one thread, or gc-lock");
  if constexpr (kTransactions)
    if (tx_settings(options).placement == gc::Placement::unlogged)
      reject("--threads", "", "gc-unlogged keeps no logs, so that a transaction that meets another one cannot abort",
             "use one thread, or gc-dedicated");
}

// limit: of what a thread's Pace counts
template <class Program>
bool run_program(const Options& options, Recorder& recorder, std::uint64_t limit) {
  const typename Program::Settings settings(options.parameters);
  const std::size_t live_bytes = Program::live_bytes(settings, options.threads);
  Session session(options, live_bytes);
  Program program(session, settings, options);
  or_refuse_memory([&] {
    Worker builder(session);
    program.build(builder);
    builder.mutator.collect();
  });
  const auto counts = [&] { return Counts{session.heap.statistics(), session.tx_statistics(), session.chunk_waits()}; };
  const Counts before = counts();

  Team team(options, 0);
  auto body = [&](Team::Member& member) {
    or_refuse_memory([&] {
      Worker worker(session);
      {
        gc::Mutator::Native native(worker.mutator);
        member.wait_for_start();
      }
      member.timed(
          [&](Pace& pace) {
            or_refuse_memory(
                [&] { transaction_counts[member.index()].transactions = program.work(worker, member.index(), pace); });
          },
          limit);
    });
  };
  team.run(body);

  const Counts after = counts();
  std::uint64_t transactions = 0;
  for (const auto& count : std::span(transaction_counts).first(options.threads)) transactions += count.transactions;
  const char* problem = nullptr;
  {
    Worker checker(session);
    problem = program.check(checker);
  }
  auto& line = add_managed(recorder, team, team.rate(transactions), transactions, before, after,
                           session.heap.settings().memory_bytes, live_bytes);
  program.add_to(line);
  recorder.write();
  record_pauses(recorder, before, after);
  if constexpr (requires { program.record_more(recorder); }) program.record_more(recorder);
  recorder.end(problem == nullptr, problem == nullptr ? "" : problem, 0);
  return problem == nullptr;
}

}  // namespace loam::workloads::managed
