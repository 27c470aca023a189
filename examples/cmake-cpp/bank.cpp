// bank: threads move money between accounts; whoever adds all accounts up meanwhile always sees the same sum.
#include <loam/tm.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

namespace tx = loam::tm;

namespace {

constexpr int kAccounts = 64, kTellers = 3, kTransfers = 20'000;
constexpr std::int64_t kOpening = 1000;

struct Account {
  std::int64_t balance = kOpening;
};
std::array<Account, kAccounts> accounts;
tx::Var<std::uint64_t> refused{0};

// An amount that the account does not have is refused: returns false
bool transfer(Account& from, Account& to, std::int64_t amount) {
  return tx::atomically([&](auto& t) {
    const std::int64_t before = t.read(from.balance);
    if (before < amount) {
      refused.set(t, refused.get(t) + 1);
      return false;
    }
    t.write(from.balance, before - amount);
    t.write(to.balance, t.read(to.balance) + amount);
    return true;
  });
}

std::int64_t total() {
  return tx::atomically(tx::read_only, [](auto& t) {
    std::int64_t sum = 0;
    for (const Account& account : accounts) sum += t.read(account.balance);
    return sum;
  });
}

}  // namespace

int main() {
  std::atomic<bool> open{true};
  std::atomic<int> wrong_sums{0};
  std::thread auditor([&] {
    while (open.load())
      if (total() != kAccounts * kOpening) ++wrong_sums;
  });
  std::atomic<std::uint64_t> refusals{0};
  std::vector<std::thread> tellers;
  for (int t = 0; t < kTellers; ++t)
    tellers.emplace_back([&, seed = static_cast<std::uint32_t>(t + 1)]() mutable {
      const auto random = [&seed](std::uint32_t below) {
        return (seed = seed * 1664525 + 1013904223, seed >> 8) % below;
      };
      for (int i = 0; i < kTransfers; ++i) {
        const std::uint32_t from = random(kAccounts), to = random(kAccounts);
        if (from != to && !transfer(accounts[from], accounts[to], 1 + random(600))) ++refusals;
      }
    });
  for (std::thread& teller : tellers) teller.join();
  open = false;
  auditor.join();

  const std::uint64_t counted = tx::atomically(tx::read_only, [](auto& t) { return refused.get(t); });
  std::printf("total %lld, refused %llu, wrong sums seen %d\n", static_cast<long long>(total()),
              static_cast<unsigned long long>(counted), wrong_sums.load());
  return total() == kAccounts * kOpening && counted == refusals.load() && wrong_sums == 0 ? 0 : 1;
}
