// abort_cause: the causes of aborts, in one table.
//   The counters and records of workloads, the C interface and the lab (through --describe) take names and words from
//   this table; tests/unit/workloads/causes_test.cpp compares schema/record.schema.json with it. To add a cause, add an
//   enumerator before `unknown` and a row: no other place lists all causes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace loam::tm {

// Conflicts come first, in the order of their distance from the word that was accessed: blame.hpp compares the numbers.
enum class AbortCause : unsigned {
  same_word,
  same_block,
  other_block,
  other_stripe,
  capacity,
  interrupt,
  reprovision,
  fallback,
  explicit_,
  unknown,
};

struct AbortCauseRow {
  AbortCause cause;
  std::string_view counter;  // "aborts_" and the cause's name: how it is called in records
  std::string_view words;    // in reports
  std::string_view meaning;

  // The name in the C interface; it ends with a zero byte.
  constexpr std::string_view name() const noexcept { return counter.substr(std::string_view("aborts_").size()); }
};

inline constexpr std::size_t kAbortCauses = static_cast<std::size_t>(AbortCause::unknown) + 1;
// Interfaces reserve space for so many causes.
inline constexpr std::size_t kAbortCausesMax = 16;
static_assert(kAbortCauses <= kAbortCausesMax);

inline constexpr std::array<AbortCauseRow, kAbortCauses> kAbortCauseTable{{
    {AbortCause::same_word, "aborts_same_word", "same word",
     "another transaction wrote the word itself: a conflict of the program's own"},
    {AbortCause::same_block, "aborts_same_block", "same block, another word",
     "another transaction wrote another word of the same block"},
    {AbortCause::other_block, "aborts_other_block", "another block, same stripe",
     "another transaction wrote another block in the same stripe: the allocator placed them there"},
    {AbortCause::other_stripe, "aborts_other_stripe", "another stripe, same record",
     "another transaction wrote another stripe that shares the ownership record: made by the mapping"},
    {AbortCause::capacity, "aborts_capacity", "too large for the hardware",
     "a hardware attempt touched more memory than the processor can track"},
    {AbortCause::interrupt, "aborts_interrupt", "interrupted",
     "a hardware attempt was interrupted: by a timer, a page fault or a system call"},
    {AbortCause::reprovision, "aborts_reprovision", "out of provided memory",
     "an allocation found its pool empty: the attempt ends, the pool is filled outside of it, and it begins again"},
    {AbortCause::fallback, "aborts_fallback", "fallback in progress",
     "a hardware attempt began while another transaction, which had fallen back, held the lock"},
    {AbortCause::explicit_, "aborts_explicit", "asked for",
     "the program cancelled the attempt or waited, or it began again with a log or in update mode"},
    {AbortCause::unknown, "aborts_unknown", "not told apart",
     "outside of blame runs every failed validation: a version says that a stripe was written, not which word of it"},
}};

constexpr bool abort_cause_table_is_whole() noexcept {
  for (std::size_t i = 0; i < kAbortCauses; ++i) {
    const AbortCauseRow& row = kAbortCauseTable[i];
    if (static_cast<std::size_t>(row.cause) != i || !row.counter.starts_with("aborts_") || row.words.empty() ||
        row.meaning.empty())
      return false;
  }
  return true;
}
static_assert(abort_cause_table_is_whole(), "one row for each cause, in the order of the enumerators");

constexpr std::string_view name_of(AbortCause cause) noexcept {
  return kAbortCauseTable[static_cast<std::size_t>(cause)].name();
}

}  // namespace loam::tm
