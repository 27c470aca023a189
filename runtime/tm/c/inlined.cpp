#include "runtime/tm/c/inlined.hpp"

#include "include/loam/tm.h"
#include "runtime/base/check.hpp"
#include "runtime/tm/algorithms/norec.hpp"
#include "runtime/tm/c/dispatch.hpp"

#include <atomic>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

// Includes the header's copy of the layout, without the start-up function of programs.
#define LOAM_NOREC_WITHOUT_START
extern "C" {
#include "include/loam/tm_norec.h"
}

namespace loam::tm {

// Compares the layout of Descriptor and of norec's state with the copy in the header.
struct InlinedLayout {
// offsetof of a class with bases is only conditionally supported by the standard; GCC supports it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
#define LOAM_SAME_PLACE(theirs, member, ours, own)                                               \
  static_assert(offsetof(theirs, member) == offsetof(ours, own) &&                               \
                    sizeof(std::declval<theirs&>().member) == sizeof(std::declval<ours&>().own), \
                "include/loam/tm_norec.h: " #theirs "::" #member " is not where the library has " #own)
  LOAM_SAME_PLACE(::loam_tx, stack_pointer, Descriptor, stack_pointer);
  LOAM_SAME_PLACE(::loam_tx, snapshot, Descriptor, snapshot);
  LOAM_SAME_PLACE(::loam_tx, write_end, Descriptor, write_end);
  LOAM_SAME_PLACE(::loam_tx, mode, Descriptor, mode);
  LOAM_SAME_PLACE(::loam_tx, special, Descriptor, special);
  LOAM_SAME_PLACE(::loam_tx, no_record, Descriptor, no_record);
  static_assert(offsetof(::loam_tx, state) == offsetof(Descriptor, state_));

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
                sizeof(::loam_norec_write) == sizeof(WriteEntry));
  LOAM_SAME_PLACE(::loam_norec_read, address, Read, address);
  LOAM_SAME_PLACE(::loam_norec_read, value, Read, value);
  LOAM_SAME_PLACE(::loam_norec_part, address, Part, address);
  LOAM_SAME_PLACE(::loam_norec_part, value, Part, value);
  LOAM_SAME_PLACE(::loam_norec_part, bytes, Part, bytes);
  LOAM_SAME_PLACE(::loam_norec_write, address, WriteEntry, address);
  LOAM_SAME_PLACE(::loam_norec_write, value, WriteEntry, value);
  LOAM_SAME_PLACE(::loam_norec_write, mask, WriteEntry, mask);
  LOAM_SAME_PLACE(::loam_norec_write, record, WriteEntry, record);
  LOAM_SAME_PLACE(::loam_norec_write, next, WriteEntry, next);
#undef LOAM_SAME_PLACE
#pragma GCC diagnostic pop

  static_assert(LOAM_NOREC_MARKS_LOG2 == WriteFilter::kMarksLog2 && sizeof(::loam_norec_state::marks) == 1U << 9);
  static_assert(static_cast<unsigned>(Mode::update) == LOAM_NOREC_UPDATE &&
                static_cast<unsigned>(Mode::nested) == LOAM_NOREC_NESTED &&
                static_cast<unsigned>(Mode::read_only) == LOAM_NOREC_READ_ONLY);
};

namespace [[gnu::visibility("hidden")]] open {
namespace {

constinit std::atomic<bool> for_norec{false};

}  // namespace

std::string_view inlined_algorithm() noexcept {
  // relaxed: set before main(), or by who loads a library before it is used
  return for_norec.load(std::memory_order_relaxed) ? Norec<false>::kDescription.name : std::string_view{};
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
  LOAM_CHECK(
      std::string_view(algorithm) == Norec<false>::kDescription.name,
      "tm: accesses of this program are compiled for {}, which version {} of the library does not know; build it "
      "again",
      algorithm, loam_version());
  LOAM_CHECK(
      version == LOAM_NOREC_VERSION,
      "tm: this program was compiled with the header of version {}.{}.{} and runs with the library of version {}; "
      "with LOAM_TM_ALGORITHM the two must be the same: build it again",
      version / 10000, version / 100 % 100, version % 100, loam_version());
  LOAM_CHECK(layout == LOAM_NOREC_LAYOUT,
             "tm: this program was not compiled with the flags of this build of the library, which LOAM_TM_ALGORITHM "
             "needs; `pkg-config --cflags loam-tm` prints them");
  // relaxed: as above
  open::for_norec.store(true, std::memory_order_relaxed);
  if (const open::Operations& chosen = *open::chosen.load(std::memory_order_relaxed); chosen.description != nullptr)
    open::check_inlined(chosen.description->name);
}

}  // namespace loam::tm
