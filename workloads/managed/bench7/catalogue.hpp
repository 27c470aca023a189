// The 45 operations of STMBench7: names, categories, the locks that they need, and how often each is drawn.
#pragma once

#include "workloads/managed/bench7/locks.hpp"
#include "workloads/managed/bench7/long_traversals.hpp"
#include "workloads/managed/bench7/operations.hpp"
#include "workloads/managed/bench7/short_traversals.hpp"
#include "workloads/managed/bench7/structural.hpp"
#include "workloads/managed/harness/plain_access.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace loam::workloads::managed::bench7 {

enum class Category : unsigned { long_update, long_read, short_update, short_read, op_update, op_read, structural };
inline constexpr std::size_t kCategories = 7;

constexpr bool is_long(Category category) noexcept {
  return category == Category::long_update || category == Category::long_read;
}
constexpr bool is_read_only(Category category) noexcept {
  return category == Category::long_read || category == Category::short_read || category == Category::op_read;
}

template <class Access>
struct Operation {
  std::string_view name;
  Category category;
  LockSet locks;
  Outcome (*run)(Context<Access>&);
};

// In the order of the table below: tests and the histogram of a run count in it.
template <class Access>
inline constexpr Operation<Access> kOperations[] = {
    {"T1", Category::long_read, reads(kAllLevels | kComposites | kAtomics), t1<Access>},
    {"T2a", Category::long_update, reads(kAllLevels | kComposites).writes(kAtomics), t2a<Access>},
    {"T2b", Category::long_update, reads(kAllLevels | kComposites).writes(kAtomics), t2b<Access>},
    {"T2c", Category::long_update, reads(kAllLevels | kComposites).writes(kAtomics), t2c<Access>},
    {"T3a", Category::long_update, reads(kAllLevels | kComposites).writes(kAtomics), t3a<Access>},
    {"T3b", Category::long_update, reads(kAllLevels | kComposites).writes(kAtomics), t3b<Access>},
    {"T3c", Category::long_update, reads(kAllLevels | kComposites).writes(kAtomics), t3c<Access>},
    {"T4", Category::long_read, reads(kAllLevels | kComposites | kDocuments), t4<Access>},
    {"T5", Category::long_update, reads(kAllLevels | kComposites).writes(kDocuments), t5<Access>},
    {"T6", Category::long_read, reads(kAllLevels | kComposites | kAtomics), t6<Access>},
    {"Q6", Category::long_read, reads(kAllLevels | kComposites), q6<Access>},
    {"Q7", Category::long_read, reads(kAtomics), q7<Access>},
    {"ST1", Category::short_read, reads(kAllLevels | kComposites | kAtomics), st1<Access>},
    {"ST2", Category::short_read, reads(kAllLevels | kComposites | kDocuments), st2<Access>},
    {"ST3", Category::short_read, reads(kAllLevels | kComposites | kAtomics), st3<Access>},
    {"ST4", Category::short_read, reads(kBases | kComposites | kDocuments), st4<Access>},
    {"ST5", Category::short_read, reads(kBases | kComposites), st5<Access>},
    {"ST6", Category::short_update, reads(kAllLevels | kComposites).writes(kAtomics), st6<Access>},
    {"ST7", Category::short_update, reads(kAllLevels | kComposites).writes(kDocuments), st7<Access>},
    {"ST8", Category::short_update, reads(kComposites | kAtomics).writes(kAllLevels), st8<Access>},
    {"ST9", Category::short_read, reads(kAllLevels | kComposites | kAtomics), st9<Access>},
    {"ST10", Category::short_update, reads(kAllLevels | kComposites).writes(kAtomics), st10<Access>},
    {"OP1", Category::op_read, reads(kAtomics), op1<Access>},
    {"OP2", Category::op_read, reads(kAtomics), op2<Access>},
    {"OP3", Category::op_read, reads(kAtomics), op3<Access>},
    {"OP4", Category::op_read, reads(kManual), op4<Access>},
    {"OP5", Category::op_read, reads(kManual), op5<Access>},
    {"OP6", Category::op_read, reads(kAllLevels), op6<Access>},
    {"OP7", Category::op_read, reads(kAllLevels), op7<Access>},
    {"OP8", Category::op_read, reads(kBases | kComposites), op8<Access>},
    {"OP9", Category::op_update, reads(0).writes(kAtomics), op9<Access>},
    {"OP10", Category::op_update, reads(0).writes(kAtomics), op10<Access>},
    {"OP11", Category::op_update, reads(0).writes(kManual), op11<Access>},
    {"OP12", Category::op_update, reads(0).writes(kAllLevels), op12<Access>},
    {"OP13", Category::op_update, reads(kAllLevels).writes(kBases), op13<Access>},
    {"OP14", Category::op_update, reads(kBases).writes(kComposites), op14<Access>},
    {"OP15", Category::op_update, reads(0).writes(kAtomics), op15<Access>},
    {"SM1", Category::structural, kStructural, sm1<Access>},
    {"SM2", Category::structural, kStructural, sm2<Access>},
    {"SM3", Category::structural, kStructural, sm3<Access>},
    {"SM4", Category::structural, kStructural, sm4<Access>},
    {"SM5", Category::structural, kStructural, sm5<Access>},
    {"SM6", Category::structural, kStructural, sm6<Access>},
    {"SM7", Category::structural, kStructural, sm7<Access>},
    {"SM8", Category::structural, kStructural, sm8<Access>},
};
inline constexpr std::size_t kOperationCount = std::size(kOperations<PlainAccess>);
static_assert(kOperationCount == 45);

}  // namespace loam::workloads::managed::bench7
