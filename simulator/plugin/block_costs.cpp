// block_costs: a plug-in of GCC that makes a program count its instructions, so that the simulator can charge them.
//   After the thread sanitizer's pass, it makes each basic block add its number of instructions to
//   loam_simulator_instructions. The next hook reads this counter (simulator/engine/access.hpp). One carrier runs all
//   fibers, so the counter is a plain word.
//   The number is GCC's own estimate for each statement, before later optimisations. An access that has a hook is
//   charged by the model and not counted.
//   cmake/LoamBlockCosts.cmake compiles it if the headers of plug-ins are installed, and loads it with -fplugin.
#include "gcc-plugin.h"

#include "tree.h"

#include "gimple.h"

#include "cgraph.h"
#include "context.h"
#include "ggc.h"
#include "gimple-iterator.h"
#include "ssa.h"
#include "stringpool.h"
#include "tree-inline.h"
#include "tree-pass.h"

#include <cstring>

// What GCC asks of everything that it loads; the project's licence is compatible with its own.
int plugin_is_GPL_compatible;

namespace {

constexpr char kCounter[] = "loam_simulator_instructions", kHook[] = "__tsan_";

// The counter, as the file that is compiled declares it. The collector of GCC must know that it is in use.
tree declared = nullptr;
const ggc_root_tab kRoots[] = {{&declared, 1, sizeof declared, &gt_ggc_mx_tree_node, &gt_pch_nx_tree_node},
                               LAST_GGC_ROOT_TAB};

tree counter() {
  if (declared != nullptr) return declared;
  declared = build_decl(UNKNOWN_LOCATION, VAR_DECL, get_identifier(kCounter), long_long_unsigned_type_node);
  TREE_PUBLIC(declared) = DECL_EXTERNAL(declared) = DECL_ARTIFICIAL(declared) = TREE_USED(declared) = 1;
  SET_DECL_ASSEMBLER_NAME(declared, DECL_NAME(declared));  // as it is: no language mangles it
  varpool_node::get_create(declared);                      // later passes look for it
  return declared;
}

bool is_hook(const gimple* statement) {
  if (!is_gimple_call(statement)) return false;
  const tree called = gimple_call_fndecl(statement);
  return called != NULL_TREE && DECL_NAME(called) != NULL_TREE &&
         std::strncmp(IDENTIFIER_POINTER(DECL_NAME(called)), kHook, sizeof kHook - 1) == 0;
}

int instructions_of(basic_block block) {
  int counted = 0, hooks = 0;
  for (gimple_stmt_iterator at = gsi_start_bb(block); !gsi_end_p(at); gsi_next(&at)) {
    gimple* const statement = gsi_stmt(at);
    if (is_gimple_debug(statement)) continue;
    if (is_hook(statement))
      ++hooks;
    else
      counted += estimate_num_insns(statement, &eni_size_weights);
  }
  return counted > hooks ? counted - hooks : 0;
}

// counter += count, at the beginning of a block.
void add(basic_block block, int count) {
  const tree word = counter(), type = TREE_TYPE(word);
  const tree before = make_ssa_name(type), after = make_ssa_name(type);
  gimple_stmt_iterator at = gsi_after_labels(block);
  gsi_insert_before(&at, gimple_build_assign(before, word), GSI_SAME_STMT);
  gsi_insert_before(&at, gimple_build_assign(after, PLUS_EXPR, before, build_int_cst(type, count)), GSI_SAME_STMT);
  gsi_insert_before(&at, gimple_build_assign(word, after), GSI_SAME_STMT);
}

constexpr pass_data kData{GIMPLE_PASS, "loam_block_costs", OPTGROUP_NONE, TV_NONE, PROP_cfg | PROP_ssa, 0, 0,
                          0,           TODO_update_ssa};

class BlockCosts : public gimple_opt_pass {
 public:
  BlockCosts(gcc::context* context, bool optimised) : gimple_opt_pass(kData, context), optimised_(optimised) {}

  bool gate(function*) override { return optimised_ == (optimize != 0); }

  unsigned execute(function* compiled) override {
    basic_block block;
    FOR_EACH_BB_FN(block, compiled) {
      const int count = instructions_of(block);
      if (count > 0) add(block, count);
    }
    return 0;
  }

 private:
  const bool optimised_;
};

// `tsan` is the sanitizer's pass where GCC optimises, `tsan0` where it does not; both are there, and one of them works.
void add_behind(const char* pass, bool optimised) {
  register_pass_info where{new BlockCosts(g, optimised), pass, 1, PASS_POS_INSERT_AFTER};
  register_callback("loam_block_costs", PLUGIN_PASS_MANAGER_SETUP, nullptr, &where);
}

}  // namespace

int plugin_init(plugin_name_args*, plugin_gcc_version* version) {
  // A plug-in fits the compiler whose headers it was made with.
  if (std::strcmp(version->basever, LOAM_GCC_VERSION) != 0) return 1;
  register_callback("loam_block_costs", PLUGIN_REGISTER_GGC_ROOTS, nullptr, const_cast<ggc_root_tab*>(kRoots));
  add_behind("tsan", true);
  add_behind("tsan0", false);
  return 0;
}
