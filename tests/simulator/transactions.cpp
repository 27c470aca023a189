// Hardware transactions on a simulated machine, through the seam that code for real ones uses.
//   written LINES STRIDE | read LINES STRIDE   so many lines in one transaction: prints status=STATUS of the abort, 0: commits
//   bank THREADS TIMES                         transfers between accounts, with a lock to fall back to
//   registers                                  locals, nesting, an explicit abort, allocation, a system call
//   blocks                                     blocks that one attempt allocates and a later one frees, aborts in between
#include "runtime/platform/affinity.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/platform/machine_simulated.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace loam::platform;

void check(bool right, const char* what) {
  if (right) return;
  std::printf("failed: %s\n", what);
  std::exit(1);
}

alignas(4096) volatile char memory[4 << 20];

void capacity(std::size_t lines, std::size_t stride, bool writes) {
  const unsigned status = transaction_begin();
  if (status != kTransactionStarted) {
    std::printf("status=%u\n", status);
    return;
  }
  for (std::size_t i = 0; i < lines; ++i) {
    if (writes)
      memory[i * stride] = 1;
    else
      static_cast<void>(memory[i * stride]);
  }
  transaction_commit();
  std::printf("status=0\n");
}

constexpr int kAccounts = 64, kStart = 1000;

struct alignas(64) Account {
  long balance = kStart;
};
Account accounts[kAccounts];
std::atomic<bool> locked{false};

// The usual elision: a transaction reads the lock, so whoever takes it aborts them all.
template <class Body>
void atomically(Body body, std::uint64_t& aborts) {
  for (int tries = 0; tries < 8; ++tries) {
    while (locked.load(std::memory_order_relaxed)) loam::platform::pause();
    const unsigned status = transaction_begin();
    if (status == kTransactionStarted) {
      if (locked.load(std::memory_order_relaxed)) transaction_abort<1>();
      body();
      transaction_commit();
      return;
    }
    ++aborts;
  }
  while (locked.exchange(true, std::memory_order_acquire)) loam::platform::pause();
  body();
  locked.store(false, std::memory_order_release);
}

void bank(unsigned count, int times) {
  std::atomic<std::uint64_t> aborts{0};
  std::vector<std::thread> threads;
  for (unsigned own = 0; own < count; ++own)
    threads.emplace_back([&, own] {
      pin_this_thread(own);
      std::minstd_rand random(own + 1);
      std::uint64_t aborted = 0;
      for (int i = 0; i < times; ++i) {
        const auto from = random() % kAccounts, to = random() % kAccounts;
        atomically(
            [&] {
              accounts[from].balance -= 1;
              accounts[to].balance += 1;
            },
            aborted);
      }
      aborts += aborted;
    });
  for (auto& thread : threads) thread.join();
  long sum = 0;
  for (const auto& account : accounts) sum += account.balance;
  check(sum == long{kAccounts} * kStart, "the bank's sum");
  std::printf("aborts=%llu\n", static_cast<unsigned long long>(aborts.load()));
}

[[gnu::noinline]] unsigned aborted_with_locals(long* outside) {
  volatile long inside = 5;
  const unsigned status = transaction_begin();
  if (status == kTransactionStarted) {
    inside = 6;
    *outside = 7;
    if (transaction_begin() == kTransactionStarted) {
      *outside = 8;
      transaction_commit();
    }
    check(in_transaction(), "an inner commit ends nothing");
    transaction_abort<99>();
  }
  check(inside == 5, "a local variable after an abort");
  return status;
}

void registers() {
  check(rtm_status() == RtmStatus::works, "transactions work");
  long outside = 1;
  const unsigned status = aborted_with_locals(&outside);
  check((status & kAbortExplicit) != 0 && explicit_code(status) == 99, "an explicit abort");
  check(outside == 1, "a variable outside after an abort");

  static int* kept = nullptr;
  for (int round = 0; round < 3; ++round) {
    const unsigned allocated = transaction_begin();
    if (allocated == kTransactionStarted) {
      kept = new int(round);
      if (round == 1) transaction_abort<1>();
      transaction_commit();
    }
  }
  check(kept != nullptr && *kept == 2, "a block of a transaction");

  const unsigned called = transaction_begin();
  if (called == kTransactionStarted) {
    std::atomic_ref<long>(outside).store(3);
    cpu_number();
    thread_id();  // a system call
    transaction_commit();
  }
  check(called != kTransactionStarted && called == 0 && outside == 1, "a system call aborts");
  std::printf("done\n");
}

// An abort concerns its own attempt alone: not what an earlier one has allocated, nor what a later one frees.
void blocks() {
  static long* volatile block = nullptr;
  static long* volatile other = nullptr;
  static long* volatile third = nullptr;
  const unsigned made = transaction_begin();
  if (made == kTransactionStarted) {
    block = new long(1);
    transaction_commit();
  }
  check(made == kTransactionStarted && block != nullptr, "a block of a transaction that commits");
  const unsigned aborted = transaction_begin();
  if (aborted == kTransactionStarted) {
    other = new long(2);
    delete block;
    transaction_abort<1>();
  }
  check(aborted != kTransactionStarted && other == nullptr, "an explicit abort");
  other = new long(3);
  third = new long(4);
  check(other != block && third != block && *block == 1, "a block of before after an abort");
  delete other;
  delete third;
  const unsigned freed = transaction_begin();
  if (freed == kTransactionStarted) {
    delete block;
    transaction_commit();
  }
  check(freed == kTransactionStarted, "a free that commits");
  other = new long(5);
  third = new long(6);
  check(other != third, "a block is freed once");
  delete other;
  delete third;
  std::printf("done\n");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const auto number = [&](int place) { return argc > place ? std::strtoul(argv[place], nullptr, 10) : 0; };
  if (what == "written" || what == "read") {
    capacity(number(2), number(3), what == "written");
  } else if (what == "bank") {
    bank(static_cast<unsigned>(number(2)), static_cast<int>(number(3)));
  } else if (what == "registers") {
    registers();
  } else if (what == "blocks") {
    blocks();
  }
  return 0;
}
