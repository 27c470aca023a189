// Overwriting writes each word of a node, with its own value, before it destroys it, and passes everything else on.
#include "workloads/transactional/shared/overwriting.hpp"
#include "structures/hash_set.hpp"
#include "structures/plain_access.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace loam::workloads {
namespace {

// PlainAccess that notes what is written, and of a destroyed node how many writes there were before.
class Noting : public structures::PlainAccess {
 public:
  struct Write {
    const void* field;
    std::uint64_t value;
  };
  std::vector<Write> writes;
  std::vector<const void*> destroyed;
  std::size_t writes_before_destroy = 0;

  template <class Field>
  void write(Field& field, std::type_identity_t<Field> value) {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    writes.push_back({&field, word});
    PlainAccess::write(field, value);
  }
  template <class Node>
  void destroy(Node* node) {
    destroyed.push_back(node);
    writes_before_destroy = writes.size();
    PlainAccess::destroy(node);
  }
};

struct Node {
  std::int64_t key;
  Node* next;
  std::uint64_t rest[3];
};

TEST(Overwriting, WritesEachWordOfANodeBeforeItDestroysIt) {
  Noting access;
  Overwriting over(access);
  Node* const node = over.create<Node>(Node{7, nullptr, {1, 2, 3}});
  over.destroy(node);
  ASSERT_EQ(access.writes.size(), sizeof(Node) / 8);
  const std::uint64_t values[] = {7, 0, 1, 2, 3};
  for (std::size_t i = 0; i < access.writes.size(); ++i) {
    EXPECT_EQ(access.writes[i].field, reinterpret_cast<const std::byte*>(node) + 8 * i);
    EXPECT_EQ(access.writes[i].value, values[i]);
  }
  EXPECT_EQ(access.writes_before_destroy, access.writes.size());
  EXPECT_EQ(access.destroyed, std::vector<const void*>{node});
}

TEST(Overwriting, ARemovalLeavesTheSameSetAndWritesTheNodeMore) {
  Noting access;
  Overwriting over(access);
  structures::HashSet<structures::Identity> set;
  for (std::int64_t key = 0; key < 100; ++key) ASSERT_TRUE(set.insert(access, key));
  access.writes.clear();
  EXPECT_TRUE(set.remove(over, 50));
  EXPECT_FALSE(set.remove(over, 50));
  EXPECT_FALSE(set.contains(access, 50));
  EXPECT_TRUE(set.contains(access, 51));
  using Found = structures::HashSet<structures::Identity>::Node;
  EXPECT_EQ(access.writes.size(), 1 + sizeof(Found) / 8) << "the link, and each word of the node";
  EXPECT_EQ(access.destroyed.size(), 1u);
  EXPECT_EQ(set.verify().elements, 99u);
}

}  // namespace
}  // namespace loam::workloads
