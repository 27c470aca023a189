// list: a sorted linked list that threads insert into and delete from. Nodes come from malloc; a deleted one is freed
// once nobody can read it any more.
#include <loam/tm.hpp>

#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

namespace tx = loam::tm;

namespace {

struct Node {
  std::int64_t key;
  Node* next;
};

class SortedList {
 public:
  // returns whether the key was not there
  bool insert(std::int64_t key) {
    return tx::atomically([&](auto& t) {
      Node** const link = find(t, key);
      Node* const next = t.read(*link);
      if (next != nullptr && t.read(next->key) == key) return false;
      t.write(*link, t.template create<Node>(key, next));
      return true;
    });
  }

  // returns whether the key was there
  bool remove(std::int64_t key) {
    return tx::atomically([&](auto& t) {
      Node** const link = find(t, key);
      Node* const node = t.read(*link);
      if (node == nullptr || t.read(node->key) != key) return false;
      t.write(*link, t.read(node->next));
      t.destroy(node);
      return true;
    });
  }

  // The number of keys; 0 if they are not in order.
  std::uint64_t verified_size() {
    return tx::atomically(tx::read_only, [&](auto& t) {
      std::uint64_t size = 0;
      std::int64_t last = -1;
      for (Node* node = t.read(head_); node != nullptr; node = t.read(node->next), ++size) {
        const std::int64_t key = t.read(node->key);
        if (key <= last) return std::uint64_t{0};
        last = key;
      }
      return size;
    });
  }

 private:
  // The link that leads to the first node whose key is at least `key`.
  template <class Tx>
  Node** find(Tx& t, std::int64_t key) {
    Node** link = &head_;
    for (Node* node; (node = t.read(*link)) != nullptr && t.read(node->key) < key;) link = &node->next;
    return link;
  }

  Node* head_ = nullptr;
};

constexpr int kThreads = 3, kSteps = 20'000;
constexpr std::uint32_t kKeys = 128;

}  // namespace

int main() {
  SortedList list;
  std::vector<std::int64_t> grown(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t, seed = static_cast<std::uint32_t>(t + 1)]() mutable {
      const auto random = [&seed](std::uint32_t below) {
        return (seed = seed * 1664525 + 1013904223, seed >> 8) % below;
      };
      std::int64_t more = 0;
      for (int i = 0; i < kSteps; ++i) {
        const std::int64_t key = 1 + random(kKeys);
        if (random(2) == 0)
          more += list.insert(key);
        else
          more -= list.remove(key);
      }
      grown[static_cast<std::size_t>(t)] = more;
    });
  for (std::thread& thread : threads) thread.join();

  std::int64_t expected = 0;
  for (const std::int64_t more : grown) expected += more;
  const std::uint64_t size = list.verified_size();
  tx::quiesce();
  const tx::Statistics s = tx::statistics_of_all();
  std::printf("keys %llu, blocks allocated %llu, freed %llu\n", static_cast<unsigned long long>(size),
              static_cast<unsigned long long>(s.blocks_allocated), static_cast<unsigned long long>(s.blocks_freed));
  return static_cast<std::int64_t>(size) == expected && s.blocks_allocated - s.blocks_freed == size ? 0 : 1;
}
