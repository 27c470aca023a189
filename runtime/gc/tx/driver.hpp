// atomically(transaction, body): runs body(transaction) as a transaction, again and again until it commits.
//   Inside of another transaction it is a closed nested one: an abort undoes only this part and tries it again a few
//   times. An attempt that aborts leaves its body by a jump: no destructor runs, but the scopes of Locals are restored.
//   An exception that leaves the body cancels the transaction: its effects are undone, and the exception propagates.
#pragma once

#include "runtime/gc/tx/transaction.hpp"

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace loam::gc {

template <class F>
auto atomically(Transaction& transaction, F&& body) {
  using Result = std::invoke_result_t<F&, Transaction&>;
  constexpr bool kReturns = !std::is_void_v<Result>;
  using Stored = std::conditional_t<kReturns, Result, char>;
  static_assert(std::is_trivially_destructible_v<Stored>,
                "a transaction's result is dropped without its destructor when the attempt aborts");
  struct Call : platform::Checkpoint {
    Transaction& transaction;
    std::remove_reference_t<F>& body;
    alignas(Stored) std::byte result[sizeof(Stored)];

    Call(Transaction& running, std::remove_reference_t<F>& runs) noexcept : transaction(running), body(runs) {}
    static void run(platform::Checkpoint& checkpoint, void* self) {
      auto& call = *static_cast<Call*>(self);
      call.transaction.begin(checkpoint);
      try {
        if constexpr (kReturns)
          ::new (static_cast<void*>(call.result)) Result(call.body(call.transaction));
        else
          call.body(call.transaction);
      } catch (...) {
        call.transaction.cancel();
        throw;
      }
      call.transaction.commit();
    }
  };
  Call call(transaction, body);
  do {
    transaction.before_attempt();
  } while (platform::run_attempt(call, &Call::run, &call) != 0);
  if constexpr (kReturns) return std::move(*std::launder(reinterpret_cast<Result*>(call.result)));
}

}  // namespace loam::gc
