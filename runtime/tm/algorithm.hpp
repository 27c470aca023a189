// algorithm: what a file of algorithms/ provides, so that the driver can run bodies under it.
//   template <bool kBlame> struct NAME {
//     static constexpr AlgorithmDescription kDescription;
//     class ReadOnlyTx;   derives from ReadAccess: a handle of a few words, copied freely
//     class UpdateTx;     derives from UpdateAccess
//     class NestedTx;     as UpdateTx, and whatever it changes in the logs can be taken back to a savepoint
//     struct Savepoint;
//     static void attach(Descriptor&);             once per thread slot: reserves what State needs
//     static void begin_read_only(Descriptor&);    begins with lifecycle::enter(), which also does this attempt's share
//     static void begin_update(Descriptor&);       of privatization and of serial transactions
//     static void commit_read_only(Descriptor&);   ends with lifecycle::committed(), or committed_special() if the
//     static void commit_update(Descriptor&);      descriptor says so; does not return if the attempt fails
//     static void rollback(Descriptor&, AbortCause);      takes back all effects; ends with lifecycle::aborted()
//     static Savepoint save(Descriptor&);                 where the logs stand
//     static void restore(Descriptor&, const Savepoint&); takes back the writes since; reads stay in the read set
//     static bool unchanged(Descriptor&);          after rollback(): whether all that the attempt had read is still so;
//   };                                             touches no memory of the user's, which may be gone
// and, where it differs from what is usual:
//     static constexpr bool kUsesRecords = false;        it has no ownership records: no mapping applies
//     static constexpr std::size_t kReadEntryBytes;      what a read adds to the log; where it is no record's address
//     static constexpr bool kKnowsHash = true;            its accesses go by HashMapped: any mapping applies
//     static constexpr bool kExtends = false;            an attempt's snapshot stays that of its begin
//     static constexpr bool kReadOnlyExtends = true;     a read-only attempt keeps a log and goes on where an update
//     would
//     static constexpr bool kReadersBlockWriters = true;  nobody can write what an attempt has read until it ends
//     static constexpr bool kWritesInPlace = true;        memory holds what is not committed yet
// An algorithm may provide besides; the driver does without what is not there:
//     static bool has_read(Descriptor&);           after rollback(): whether the attempt had read anything. Without it,
//                                                  retry() of an attempt that has read nothing is no error
//     static void waits_for(Descriptor&, F);       after rollback(): calls F(record) for all that unchanged() looks at.
//                                                  Without it any commit wakes who waits
//     static void resume(Descriptor&, const Savepoint&);  after restore() to the same savepoint: drops the reads
//                                                  since it and makes sure that all earlier ones are still valid
//                                                  together, or ends the attempt. Who has it asks
//                                                  lifecycle::restarts_part() before a conflict's rollback. Without it,
//                                                  a conflict ends the whole attempt
//     static void release_read(Descriptor&, const Word*);  drops one read of the word from the read set. Without it,
//                                                  early release has no effect, which is always safe
// Test points, at the same moments in all of them: tm.began (nothing is read yet), tm.reading (between a read's look at
// its metadata and the data), tm.locked (a write owns its record), tm.extending (the new time is known, nothing is
// validated), tm.committing, tm.validated (nothing is written yet), tm.written (before each release), tm.aborted.
// tm.waiting, each time that an attempt looks again whether another one has ended.
#pragma once

#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/types.hpp"

#include <concepts>
#include <string_view>

namespace loam::tm {

struct AlgorithmDescription {
  std::string_view name;
  std::string_view summary;
  std::string_view paper;
  std::string_view guarantees;
  unsigned threads_max = reclaim::Domain::kSlots;
  // Whether attempts of two threads can be inside at once. If not, a begin waits until the other attempt has ended.
  bool overlaps = true;
};

template <class A>
concept Algorithm = requires(Descriptor& d, AbortCause cause, const typename A::Savepoint& savepoint) {
  { A::kDescription } -> std::convertible_to<const AlgorithmDescription&>;
  typename A::ReadOnlyTx;
  typename A::UpdateTx;
  typename A::NestedTx;
  { A::attach(d) } -> std::same_as<void>;
  { A::begin_read_only(d) } -> std::same_as<void>;
  { A::begin_update(d) } -> std::same_as<void>;
  { A::commit_read_only(d) } -> std::same_as<void>;
  { A::commit_update(d) } -> std::same_as<void>;
  { A::rollback(d, cause) } -> std::same_as<void>;
  { A::save(d) } -> std::same_as<typename A::Savepoint>;
  { A::restore(d, savepoint) } -> std::same_as<void>;
  { A::unchanged(d) } -> std::same_as<bool>;
};

template <class A>
consteval bool uses_records() {
  if constexpr (requires { A::kUsesRecords; }) return A::kUsesRecords;
  return true;
}
// Whether mapping=hash applies. Where there are no records any mapping does.
template <class A>
consteval bool knows_hash() {
  if constexpr (requires { A::kKnowsHash; }) return A::kKnowsHash;
  return !uses_records<A>();
}
template <class A>
consteval bool extends() {
  if constexpr (requires { A::kExtends; }) return A::kExtends;
  return true;
}
template <class A>
consteval bool read_only_extends() {
  if constexpr (requires { A::kReadOnlyExtends; }) return A::kReadOnlyExtends;
  return false;
}
template <class A>
consteval bool readers_block_writers() {
  if constexpr (requires { A::kReadersBlockWriters; }) return A::kReadersBlockWriters;
  return false;
}
template <class A>
consteval bool writes_in_place() {
  if constexpr (requires { A::kWritesInPlace; }) return A::kWritesInPlace;
  return false;
}
template <class A>
consteval bool any_commit_wakes() {
  return !requires(Descriptor& d, void (*f)(const Orec&)) { A::waits_for(d, f); };
}

}  // namespace loam::tm
