// dctl: etl-wb with a deferred clock, which commits read and do not advance.
//   The version of a commit is the clock plus one. So it is newer than every snapshot, and commits that meet no reader
//   share it. The clock advances only when an attempt meets such a version: the attempt raises the clock to it. If
//   threads write and read different data, nobody writes to the clock's cache line at all.
//   Source      Ramalhete and Correia, PPoPP 2024 (DCTL, DCOTL: the commit takes the clock as it is, reads ask for less
//               than the snapshot; here both are one higher, so that the read path is etl-wb's); the idea of a version
//               ahead of the clock: GV5, Avni and Shavit, TRANSACT 2008. The rest: etl_wb.hpp.
//   Guarantees  opacity, with real time. Publication safe. Not privatization safe by itself, as etl-wb.
//   Conflicts   as etl-wb. A read-only attempt aborts once if it reads something committed since the clock last
//               advanced, because it has no log to validate. An attempt with a log extends.
//   Cost        as etl-wb, but a commit loads the clock instead of a fetch-add, and always validates its reads. Reading
//               what the thread itself has just written costs one CAS of the clock and one extension.
//   When not    long read-only transactions beside frequent commits to the same data (one more abort each); a single
//               thread that reads what it wrote (etl-wb's fetch-add on an unshared line is cheaper).
// Why it is right
//   D1 (commit) The clock is loaded when all locks are held, and what was read is validated after that. A commit whose
//      version is v has loaded v - 1. So a thread that sees the clock at v or later, and then loads records, sees all
//      of that commit's locks: it finds a lock or the new version, never an older version. Hence a snapshot s, taken
//      from the clock, is stable: commits with versions up to s are visible, and later commits will have later
//      versions.
//   D2 (same version) Of two commits with one version neither has read what the other wrote, since a read of version v
//      raises the clock to v, and the reader's own version is then v + 1 or more. Nor have both missed the other's
//      write, in a circle of any length: each validated after its own locks, so a circle would order every lock before
//      itself. Versions of one record grow strictly: it is locked at a version of at most the snapshot. Real time
//      adds no circle: of the commits with one version, those that must come before one that has ended held their locks
//      before its end. So a thread that begins after it finds their writes and raises the clock.
//   D3 (skip rule) There is none: an unchanged clock does not prove that no thread has committed.
//   D4 (progress) An attempt that fails on a version after its snapshot first raises the clock to it, a read-only
//      attempt too. Otherwise the next attempt would find the same version with the same snapshot, for ever.
//   D5 (privatization) A commit that waits for older attempts raises the clock to its version first: attempts publish
//      the clock, and new ones would count as older for ever. Memory has an epoch of its own (reclaim/epoch.hpp).
// Memory orders: P1, P2 and P4 as in etl_wb.hpp, with the raise in place of the fetch_add; in brackets the failure
//   P3 commits  lock CAS(seq_cst), clock load(seq_cst), then validation loads(seq_cst) / the same in the other one
//               [write skew: each validates before the other's lock is visible; a version that is already the past of a
//               snapshot]
//   P4 now      raise: clock CAS(seq_cst) / clock load(acquire), then loads(seq_cst) of records. The committer's side has
//               no store to the clock that could release its locks, and that is the point. So their order is that of
//               seq_cst alone: lock CAS, committer's clock load, raise, then the load of the record in whoever has seen
//               the raise. [a record from before a lock whose version the snapshot covers] x86 loads cost the same.
#pragma once

#include "runtime/tm/algorithms/etl_wb.hpp"

namespace loam::tm {

struct DeferredClock {
  static constexpr bool kUnique = false;  // D3
  // P3
  static constexpr auto kLock = std::memory_order_seq_cst, kValidate = std::memory_order_seq_cst;

  // The clock before a commit whose version is the value after this one. Call with all locks held (D1).
  static std::uint64_t take() noexcept { return version_clock.now.load(std::memory_order_seq_cst); }  // P3

  // Raises the clock to `version`, the version of a commit, if it is lower (D4, D5).
  static void reach(std::uint64_t version) noexcept {
    std::uint64_t now = version_clock.now.load(std::memory_order_relaxed);  // relaxed: the CAS, or P4's load, decides
    while (now < version && !version_clock.now.compare_exchange_weak(now, version, std::memory_order_seq_cst,  // P4
                                                                     std::memory_order_relaxed)) {
    }
  }
};

template <bool kBlame>
struct Dctl : EtlWbWith<kBlame, DeferredClock> {
  static constexpr AlgorithmDescription kDescription{
      .name = "dctl",
      .summary = "encounter-time locking, write-back, a clock that moves only when a reader meets a new version",
      .paper = "DCTL, PPoPP 2024",
      .guarantees = "opacity; publication safe"};
};

}  // namespace loam::tm
