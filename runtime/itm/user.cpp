// user: the functions that programs call themselves.
#include "runtime/base/check.hpp"
#include "runtime/itm/interface.hpp"
#include "runtime/itm/thread.hpp"

namespace loam::itm {

LOAM_ITM_EXPORTED int _ITM_versionCompatible(int version) { return version == kInterfaceVersion ? 1 : 0; }

LOAM_ITM_EXPORTED const char* _ITM_libraryVersion() { return "Loam libitm 0.1"; }

LOAM_ITM_EXPORTED [[noreturn]] void _ITM_error(const void*, int code) {
  LOAM_FATAL("libitm: the program called _ITM_error() with code {}", code);
}

LOAM_ITM_EXPORTED void _ITM_addUserCommitAction(void (*action)(void*), TransactionId resuming, void* argument) {
  Thread& t = running_or_die("_ITM_addUserCommitAction()");
  LOAM_CHECK(
      resuming == kNoTransactionId,
      "libitm: _ITM_addUserCommitAction() of transaction {}: actions run when the outermost one commits, which is "
      "{}, _ITM_noTransactionId",
      resuming, kNoTransactionId);
  if (t.actions_end == t.actions.capacity()) t.actions.reserve_or_die(std::size_t{1} << 24, "log of commit actions");
  t.actions.begin()[t.actions_end++] = {action, argument};
}

LOAM_ITM_EXPORTED void _ITM_addUserUndoAction(void (*action)(void*), void* argument) {
  running_or_die("_ITM_addUserUndoAction()").undo.note_action(action, argument);
}

}  // namespace loam::itm
