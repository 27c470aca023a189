#include "runtime/tm/c/inlined.hpp"

#include "include/loam/tm.h"
#include "runtime/base/check.hpp"
#include "runtime/tm/algorithms/dctl.hpp"
#include "runtime/tm/algorithms/etl_wb.hpp"
#include "runtime/tm/algorithms/norec.hpp"
#include "runtime/tm/c/dispatch.hpp"
#include "runtime/tm/runtime.hpp"

#include <atomic>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

// The header's copy of the layout; without an algorithm it has no accesses.
extern "C" {
#include "include/loam/tm_inlined.h"
}

namespace loam::tm {

// Compares the layout of Descriptor, of norec's state and of the map of records with the copy in the header.
struct InlinedLayout {
// offsetof of a class with bases is only conditionally supported by the standard; GCC supports it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
#define LOAM_SAME_PLACE(theirs, member, ours, own)                                               \
  static_assert(offsetof(theirs, member) == offsetof(ours, own) &&                               \
                    sizeof(std::declval<theirs&>().member) == sizeof(std::declval<ours&>().own), \
                "include/loam/tm_inlined.h: " #theirs "::" #member " is not where the library has " #own)
  LOAM_SAME_PLACE(::loam_tx, stack_pointer, Descriptor, stack_pointer);
  LOAM_SAME_PLACE(::loam_tx, snapshot, Descriptor, snapshot);
  LOAM_SAME_PLACE(::loam_tx, records_end, Descriptor, read_cursor);
  LOAM_SAME_PLACE(::loam_tx, records_limit, Descriptor, read_limit);
  LOAM_SAME_PLACE(::loam_tx, write_end, Descriptor, write_end);
  LOAM_SAME_PLACE(::loam_tx, write_limit, Descriptor, write_limit);
  LOAM_SAME_PLACE(::loam_tx, locked_word, Descriptor, locked_word);
  LOAM_SAME_PLACE(::loam_tx, mode, Descriptor, mode);
  LOAM_SAME_PLACE(::loam_tx, special, Descriptor, special);
  LOAM_SAME_PLACE(::loam_tx, no_record, Descriptor, no_record);
  static_assert(offsetof(::loam_tx, norec_state) == offsetof(Descriptor, state_));

  using State = Norec<false>::State;
  using Read = Norec<false>::WordRead;
  using Part = Norec<false>::PartRead;
  LOAM_SAME_PLACE(::loam_norec_state, reads_end, State, words_end);
  LOAM_SAME_PLACE(::loam_norec_state, reads_limit, State, words_limit);
  LOAM_SAME_PLACE(::loam_norec_state, parts_end, State, parts_end);
  LOAM_SAME_PLACE(::loam_norec_state, parts_limit, State, parts_limit);
  static_assert(std::is_base_of_v<WriteFilter, RedoLog>);  // the first base: it begins where the log does
  static_assert(offsetof(::loam_norec_state, generation) == offsetof(State, redo) + offsetof(WriteFilter, generation));
  static_assert(offsetof(::loam_norec_state, marks) == offsetof(State, redo) + offsetof(WriteFilter, marks));
  static_assert(offsetof(::loam_norec_state, linear_end) == offsetof(State, redo) + offsetof(WriteFilter, linear_end));

  static_assert(sizeof(::loam_norec_read) == sizeof(Read) && sizeof(::loam_norec_part) == sizeof(Part) &&
                sizeof(::loam_inlined_write) == sizeof(WriteEntry));
  LOAM_SAME_PLACE(::loam_norec_read, address, Read, address);
  LOAM_SAME_PLACE(::loam_norec_read, value, Read, value);
  LOAM_SAME_PLACE(::loam_norec_part, address, Part, address);
  LOAM_SAME_PLACE(::loam_norec_part, value, Part, value);
  LOAM_SAME_PLACE(::loam_norec_part, bytes, Part, bytes);
  LOAM_SAME_PLACE(::loam_inlined_write, address, WriteEntry, address);
  LOAM_SAME_PLACE(::loam_inlined_write, value, WriteEntry, value);
  LOAM_SAME_PLACE(::loam_inlined_write, mask, WriteEntry, mask);
  LOAM_SAME_PLACE(::loam_inlined_write, record, WriteEntry, record);
  LOAM_SAME_PLACE(::loam_inlined_write, old_version, WriteEntry, old_version);
  LOAM_SAME_PLACE(::loam_inlined_write, next, WriteEntry, next);

  static_assert(offsetof(Shared, map) == 0);
  LOAM_SAME_PLACE(::loam_inlined_records, base, RecordMap, base);
  LOAM_SAME_PLACE(::loam_inlined_records, mask, RecordMap, mask);
  LOAM_SAME_PLACE(::loam_inlined_records, shift, RecordMap, shift);
#undef LOAM_SAME_PLACE
#pragma GCC diagnostic pop

  static_assert(LOAM_NOREC_LINEAR_MAX == RedoLog::kLinearMax);
  static_assert(LOAM_NOREC_MARKS_LOG2 == WriteFilter::kMarksLog2 && sizeof(::loam_norec_state::marks) == 1U << 9);
  static_assert(static_cast<unsigned>(Mode::update) == LOAM_INLINED_UPDATE &&
                static_cast<unsigned>(Mode::nested) == LOAM_INLINED_NESTED &&
                static_cast<unsigned>(Mode::read_only) == LOAM_INLINED_READ_ONLY);
};

namespace [[gnu::visibility("hidden")]] open {
namespace {

// Of the algorithms that have inline accesses, the one of this process; nullptr: its accesses are calls.
constinit std::atomic<const AlgorithmDescription*> inlined{nullptr};

const AlgorithmDescription* description_of(std::string_view algorithm) noexcept {
  for (const AlgorithmDescription* each :
       {&Norec<false>::kDescription, &EtlWb<false>::kDescription, &Dctl<false>::kDescription})
    if (algorithm == each->name) return each;
  return nullptr;
}

}  // namespace

std::string_view inlined_algorithm() noexcept {
  // relaxed: set before main(), or by who loads a library before it is used
  const AlgorithmDescription* const of = inlined.load(std::memory_order_relaxed);
  return of != nullptr ? of->name : std::string_view{};
}

void check_inlined(std::string_view algorithm) noexcept {
  const std::string_view wanted = inlined_algorithm();
  LOAM_CHECK(
      wanted.empty() || algorithm == wanted,
      "tm: accesses of this program are compiled for {} (LOAM_TM_ALGORITHM), and its transactions use {}; build it "
      "without LOAM_TM_ALGORITHM, or let all of them use {}",
      wanted, algorithm, wanted);
}

}  // namespace open

extern "C" void loam_tm_compiled_for(const char* algorithm, unsigned version, size_t layout) {
  const AlgorithmDescription* const wanted = open::description_of(algorithm);
  LOAM_CHECK(
      wanted != nullptr,
      "tm: accesses of this program are compiled for {}, which version {} of the library does not know; build it "
      "again",
      algorithm, loam_version());
  LOAM_CHECK(
      version == LOAM_INLINED_VERSION,
      "tm: this program was compiled with the header of version {}.{}.{} and runs with the library of version {}; "
      "with LOAM_TM_ALGORITHM the two must be the same: build it again",
      version / 10000, version / 100 % 100, version % 100, loam_version());
  LOAM_CHECK(layout == LOAM_INLINED_LAYOUT,
             "tm: this program was not compiled with the flags of this build of the library, which LOAM_TM_ALGORITHM "
             "needs; `pkg-config --cflags loam-tm` prints them");
  const AlgorithmDescription* before = nullptr;
  // relaxed: as above
  const bool first = open::inlined.compare_exchange_strong(before, wanted, std::memory_order_relaxed);
  LOAM_CHECK(first || before == wanted,
             "tm: some accesses of this program are compiled for {}, others for {}; build all of its files, and the "
             "libraries that it loads, with one LOAM_TM_ALGORITHM",
             before->name, wanted->name);
  if (const open::Operations& chosen = *open::chosen.load(std::memory_order_relaxed); chosen.description != nullptr)
    open::check_inlined(chosen.description->name);
}

}  // namespace loam::tm
