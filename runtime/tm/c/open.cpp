#include "runtime/tm/c/open.hpp"

extern "C" [[gnu::weak]] int _ITM_inTransaction() noexcept;

namespace loam::tm {
namespace [[gnu::visibility("hidden")]] open {

[[gnu::tls_model("initial-exec")]] thread_local constinit Running running;

int (*const foreign_transaction)() = &_ITM_inTransaction;

void check_stack(std::uintptr_t stack, const char* call) noexcept {
  if (running.transaction == nullptr) return;
  const bool left = running.is_open ? stack > running.stack : stack >= running.stack;
  LOAM_CHECK(!left,
             "tm: {} by a function outside of the transaction that runs: the one that began it returned without "
             "loam_tx_commit(), or was left by longjmp()",
             call);
}

void check_foreign() noexcept {
  LOAM_CHECK(
      foreign_transaction == nullptr || foreign_transaction() == 0,
      "tm: a transaction of Loam inside one of libitm (__transaction_atomic): the two do not see each other; move "
      "one out of the other");
}

void check_commit(const Descriptor& d, const Frame& frame, std::uintptr_t stack) noexcept {
  LOAM_CHECK(d.mode != Mode::idle && d.mode != Mode::detached,
             "tm: loam_tx_commit() outside of transactions; each needs a loam_tx_begin() of the same thread before it");
  check_stack(stack, "loam_tx_commit()");
  LOAM_CHECK(frame.is_begun(), "tm: loam_tx_commit() of a frame that was not begun, or is committed already");
  if (!frame.outermost) return;
  LOAM_CHECK(running.transaction == &frame.transaction,
             "tm: loam_tx_commit() of a frame that is not of the transaction that runs");
  LOAM_CHECK(d.part == nullptr, "tm: loam_tx_commit() of the whole transaction in a part of it (loam_tx_closed())");
  LOAM_CHECK(running.begun_inside == 0,
             "tm: loam_tx_commit() while {} loam_tx_begin() inside the transaction have had no loam_tx_commit()",
             running.begun_inside);
}

}  // namespace open
}  // namespace loam::tm
