// An allocator for objects and logs that checks at each allocation which of the two it serves: a control, to measure
// the cost of this check.
//   Source  paper 002, section 4.4: a flag that is set around the allocation of a log, and asked by the bump allocator.
//           Loam's other code that logs calls the store of logs directly, so it needs no such check.
//   Use     TxSettings::checked_allocation, with Placement::dedicated; all threads of the heap have a CheckingMutator and
//           a CheckingTransaction, and allocate through these.
//   Cost    a load, a compare and a branch for each allocation.
#pragma once

#include "runtime/gc/logs/dedicated_store.hpp"
#include "runtime/gc/tx/transaction.hpp"

#include <cstddef>

namespace loam::gc {

class CheckingMutator : public Mutator {
 public:
  using Mutator::Mutator;

  template <class T>
  T* allocate() {
    return is_for_logs() ? static_cast<T*>(allocate_log()) : Mutator::allocate<T>();
  }
  template <class A>
  A* allocate_array(std::size_t length) {
    return is_for_logs() ? static_cast<A*>(allocate_log()) : Mutator::allocate_array<A>(length);
  }

  struct LogRequest {
    DedicatedStore& store;
    LogBase& log;
  };
  // The flag: set while a log allocates.
  void set_request(LogRequest* request) noexcept { request_ = request; }

 private:
  [[gnu::always_inline]] bool is_for_logs() const noexcept { return request_ != nullptr; }
  // The chunk that makes room in the log is part of it afterwards; null if the log has room without one.
  [[gnu::noinline]] Object* allocate_log() {
    const LogRequest& request = *request_;
    return request.store.add_chunk(request.log, *this);
  }

  LogRequest* request_ = nullptr;
};

class CheckingTransaction : public Transaction {
 public:
  CheckingTransaction(Transactions& all, CheckingMutator& mutator) : Transaction(all, mutator), checking_(mutator) {}

  template <class T>
  T* create() {
    return static_cast<T*>(created(checking_.allocate<T>()));
  }
  template <class A>
  A* create_array(std::size_t length) {
    return static_cast<A*>(created(checking_.allocate_array<A>(length)));
  }
  CheckingMutator& mutator() noexcept { return checking_; }

 private:
  CheckingMutator& checking_;
};

class CheckingStore final : public DedicatedStore {
 public:
  using DedicatedStore::DedicatedStore;

  void grow(LogBase& log, Mutator& mutator) override {
    auto& checking = static_cast<CheckingMutator&>(mutator);
    CheckingMutator::LogRequest request{*this, log};
    struct Flag {
      CheckingMutator& mutator;
      ~Flag() { mutator.set_request(nullptr); }
    } flag{checking};
    checking.set_request(&request);
    checking.allocate<LogChunk>();
  }
};

}  // namespace loam::gc
