// algorithm: the interface that each file of algorithms/ provides and that the driver calls.
//
//   template <bool kBlame> struct NAME {
//     static constexpr AlgorithmDescription kDescription;
//     class ReadOnlyTx;   derives from ReadAccess: a handle of a few words, copied freely
//     class UpdateTx;     derives from UpdateAccess
//     class NestedTx;     as UpdateTx; its changes to the logs can be undone back to a savepoint
//     struct Savepoint;   the lengths of the logs at some moment
//     static void attach(Descriptor&);                    once per thread slot: reserves the algorithm's data there
//     static void begin_read_only(Descriptor&);           begins with lifecycle::enter(), which handles privatization
//     static void begin_update(Descriptor&);              and serial transactions
//     static void commit_read_only(Descriptor&);          ends with lifecycle::committed(), or committed_special() if
//     static void commit_update(Descriptor&);             the descriptor says so; does not return if the attempt fails
//     static void rollback(Descriptor&, AbortCause);      undoes all effects; ends with lifecycle::aborted()
//     static Savepoint save(Descriptor&);
//     static void restore(Descriptor&, const Savepoint&); undoes the writes since; reads stay in the read set
//     static bool unchanged(Descriptor&);                 after rollback(): whether all that was read is still the
//                                                         same; touches no user memory, which may be gone
//   };
//
// Optional properties. Define those in which the algorithm differs from the default:
//   static constexpr bool kUsesRecords = false;           it has no ownership records, so it ignores the mapping
//   static constexpr std::size_t kReadEntryBytes;         bytes of a read's log entry, if it is not a record's address
//   static constexpr bool kKnowsHash = true;              its accesses use HashMapped: any mapping can be chosen
//   static constexpr bool kExtends = false;               an attempt never moves the snapshot of its begin
//   static constexpr bool kReadOnlyExtends = true;        a read-only attempt keeps a log, and can extend its snapshot
//   static constexpr bool kReadsAlike = true;             before its first write an update may use the reads of a
//                                                         read-only attempt: both log a read in the same way
//   static constexpr bool kReadersBlockWriters = true;    no other attempt can write a word that an attempt has read
//                                                         until that attempt ends
//   static constexpr bool kWritesInPlace = true;          memory holds uncommitted values
//   static constexpr bool kPrivatizesSafely = true;       plain code may use what a commit has unlinked at once:
//                                                         nothing is published, and no commit waits
//   static constexpr bool kSwitches = true;               it changes between two algorithms (switching.hpp). The other
//                                                         properties are those of the scalable one
//
// Optional functions. The driver works without them:
//   static bool has_read(Descriptor&);                    after rollback(): whether the attempt had read anything.
//                                                         Without it, retry() of an attempt that has read nothing is
//                                                         not detected as an error
//   static void waits_for(Descriptor&, F);                after rollback(): calls F(record) for all records that
//                                                         unchanged() checks. Without it, any commit wakes a waiter
//   static const waiting::Awaited& awaits(const Descriptor&);   after rollback(), in place of unchanged() and waits_for():
//                                                         for one that changes between two algorithms
//   static void resume(Descriptor&, const Savepoint&);    after restore() to the same savepoint: drops the reads since
//                                                         it and checks that all earlier ones are still valid together,
//                                                         or ends the attempt. An algorithm with it asks
//                                                         lifecycle::restarts_part() before the rollback of a conflict.
//                                                         Without it, a conflict ends the whole attempt
//   static void release_read(Descriptor&, const Word*);   drops one read of the word from the read set. Without it,
//                                                         early release has no effect, which is always safe
//
// Test points, at the same moments in all algorithms:
//   tm.began       nothing has been read yet
//   tm.reading     a read has loaded its metadata and not its data, or the reverse
//   tm.locked      a write owns its record
//   tm.extending   the new time is known, nothing has been validated
//   tm.committing  a commit that writes begins
//   tm.validated   nothing has been written yet
//   tm.written     before each release
//   tm.aborted     all effects are undone
//   tm.waiting     each time that an attempt checks again whether another one has ended
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
// Whether mapping=hash can be chosen. An algorithm without records accepts every mapping.
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
consteval bool privatizes_safely() {
  if constexpr (requires { A::kPrivatizesSafely; }) return A::kPrivatizesSafely;
  return false;
}
template <class A>
consteval bool switches() {
  if constexpr (requires { A::kSwitches; }) return A::kSwitches;
  return false;
}
template <class A>
consteval bool any_commit_wakes() {
  return !requires(Descriptor& d, void (*f)(const Orec&)) { A::waits_for(d, f); };
}

// The functions and properties of an algorithm that an attaching thread needs.
template <Algorithm A>
consteval Hooks hooks_of() {
  return {.description = &A::kDescription,
          .attach = &A::attach,
          .rollback = &A::rollback,
          .uses_records = uses_records<A>(),
          .knows_hash = knows_hash<A>(),
          .privatizes_safely = privatizes_safely<A>(),
          .switches = switches<A>()};
}

}  // namespace loam::tm
