// Accesses through the C interface, as calls and inline, under the algorithm for which this file is compiled, to be
// counted by test_c_counts.py (steps.hpp says how).
#include "include/loam/tm.h"
#include "tests/golden/steps.hpp"
#include "tests/harness/c_bodies.hpp"

#include <string>
#include <string_view>

namespace {

using namespace loam::golden;
using loam::tests::atomically;

// Steps of norec, the default, have no name before them.
constexpr bool kNorec = std::string_view(LOAM_INLINED_ALGORITHM) == "norec";
std::string name_of(const char* step, const char* how) {
  return (kNorec ? "" : LOAM_INLINED_ALGORITHM ": ") + std::string(step) + how;
}

#define LOAM_ACCESS [[gnu::always_inline]] static

// In parentheses, an access is the call.
struct Called {
  static constexpr const char* kHow = ": call";
  LOAM_ACCESS Node* next(loam_tx* tx, const Node* node) {
    return static_cast<Node*>((loam_tx_read_ptr)(tx, &node->next));
  }
  LOAM_ACCESS std::uint32_t half(loam_tx* tx, const Node* node) { return (loam_tx_read_u32)(tx, &node->spare); }
  LOAM_ACCESS std::uint64_t key(loam_tx* tx, const Node* node) { return (loam_tx_read_u64)(tx, &node->key); }
  LOAM_ACCESS void set_key(loam_tx* tx, Node* node, std::uint64_t key) { (loam_tx_write_u64)(tx, &node->key, key); }
  LOAM_ACCESS void set_half(loam_tx* tx, Node* node, std::uint32_t half) {
    (loam_tx_write_u32)(tx, &node->spare, half);
  }
};

struct Inlined {
  static constexpr const char* kHow = ": inline";
  LOAM_ACCESS Node* next(loam_tx* tx, const Node* node) {
    return static_cast<Node*>(loam_tx_read_ptr(tx, &node->next));
  }
  LOAM_ACCESS std::uint32_t half(loam_tx* tx, const Node* node) { return loam_tx_read_u32(tx, &node->spare); }
  LOAM_ACCESS std::uint64_t key(loam_tx* tx, const Node* node) { return loam_tx_read_u64(tx, &node->key); }
  LOAM_ACCESS void set_key(loam_tx* tx, Node* node, std::uint64_t key) { loam_tx_write_u64(tx, &node->key, key); }
  LOAM_ACCESS void set_half(loam_tx* tx, Node* node, std::uint32_t half) { loam_tx_write_u32(tx, &node->spare, half); }
};

template <class How>
void reads() {
  const auto chase = [](const char* name, unsigned flags) {
    compare<kFew, kMore>(name_of(name, How::kHow).c_str(), [flags](auto n) {
      atomically(
          [&](loam_tx* tx) LOAM_STEP {
            Node* node = opaque(&nodes[0]);
            straight<n>([&](auto) LOAM_STEP { node = How::next(tx, node); });
            opaque(node);
          },
          flags);
    });
  };
  chase("read of a word, read-only", LOAM_READ_ONLY);
  chase("read of a word", 0);
  compare<kFew, kMore>(name_of("read of 4 bytes", How::kHow).c_str(), [](auto n) {
    atomically([&](loam_tx* tx) LOAM_STEP {
      Node* const node = opaque(&nodes[0]);
      straight<n>([&](auto i) LOAM_STEP { opaque(How::half(tx, node + i)); });
    });
  });
  compare<kFew, kMore>(name_of("read of a word written before", How::kHow).c_str(), [](auto n) {
    atomically([&](loam_tx* tx) LOAM_STEP {
      Node* const node = opaque(&nodes[0]);
      How::set_key(tx, node, 1);
      straight<n>([&](auto) LOAM_STEP { opaque(How::key(tx, node)); });
    });
  });
}

template <class How>
void writes() {
  compare<2, 8>(name_of("write of a word, the second to the eighth, with its commit", How::kHow).c_str(), [](auto n) {
    atomically([&](loam_tx* tx) LOAM_STEP {
      Node* const node = opaque(&nodes[0]);
      straight<n>([&](auto i) LOAM_STEP { How::set_key(tx, node + i, i); });
    });
  });
  compare<10, kMore>(name_of("write of a word behind the eighth, with its commit", How::kHow).c_str(), [](auto n) {
    atomically([&](loam_tx* tx) LOAM_STEP {
      Node* const node = opaque(&nodes[0]);
      straight<n>([&](auto i) LOAM_STEP { How::set_key(tx, node + i, i); });
    });
  });
  compare<2, 8>(name_of("write of 4 bytes, the second to the eighth, with its commit", How::kHow).c_str(), [](auto n) {
    atomically([&](loam_tx* tx) LOAM_STEP {
      Node* const node = opaque(&nodes[0]);
      straight<n>([&](auto i) LOAM_STEP { How::set_half(tx, node + i, i); });
    });
  });
}

}  // namespace

int main(int count, char**) {
  link_nodes();
  timed = count > 1;
  loam_config config;
  loam_config_default(&config);
  config.privatization = "none";  // else commits under ownership records wait for other attempts
  loam_configure(&config);
  reads<Called>();
  reads<Inlined>();
  writes<Called>();
  writes<Inlined>();
  compare<1, 2>(name_of("empty transaction", "").c_str(),
                [](auto n) { straight<n>([](auto) LOAM_STEP { atomically([](loam_tx*) LOAM_STEP {}); }); });
  std::printf("compiler: GCC %s\n", __VERSION__);
}
