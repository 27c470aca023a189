// words: threads count words in one map, which is no concurrent one. Two maps share a server; a third one is changed by
// whichever thread is there.
#include <loam/delegation.hpp>

#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

using Counts = std::map<std::string, long>;
using Server = loam::delegation::Server<>;

constexpr long kRounds = 2000;
const std::vector<std::string> kWords{"loam", "sand", "clay", "silt"};

}  // namespace

int main() {
  Server server;
  loam::delegated<Counts, Server> long_words(server), short_words(server);
  loam::delegated<Counts> all_words;

  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (long i = 0; i < kRounds; ++i) {
        const std::string& word = kWords[static_cast<std::size_t>(i) % kWords.size()];
        // In flight while this thread counts elsewhere.
        auto ticket = long_words.submit([&word](Counts& counts) { return ++counts[word + word]; });
        short_words.apply([&word](Counts& counts) { ++counts[word]; });
        all_words.apply_each(kWords, [](Counts& counts, const std::string& each) { ++counts[each]; });
        ticket.get();
      }
    });
  for (std::thread& thread : threads) thread.join();

  const auto sum = [](Counts& counts) {
    long total = 0;
    for (const auto& [word, count] : counts) total += count;
    return total;
  };
  const long in_long = long_words.apply(sum), in_short = short_words.apply(sum), in_all = all_words.apply(sum);
  std::printf("long %ld, short %ld, all %ld\n", in_long, in_short, in_all);
  return in_long == 3 * kRounds && in_short == 3 * kRounds && in_all == 12 * kRounds ? 0 : 1;
}
