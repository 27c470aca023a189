// The structure of STMBench7, and that its verification sees damage.
#include "workloads/managed/bench7/catalogue.hpp"
#include "workloads/managed/bench7/mix.hpp"
#include "workloads/managed/bench7/verify.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace loam::workloads::managed::bench7 {
namespace {

class Bench7 : public testing::Test {
 public:
  Bench7() : settings_{sizes_of("tiny"), false}, heap_({.memory_bytes = std::size_t{32} << 20}), mutator_(heap_) {
    all_.emplace(mutator_, make_roots(plain_, settings_.sizes));
    roots_.emplace(mutator_, all_->get());
    make_everything(context());
  }

  Context<PlainAccess> context() { return {plain_, *roots_, random_, settings_}; }
  const char* problem() { return verify(*all_->get(), settings_.sizes); }
  AtomicPart* part(std::uint64_t id) { return map_find<AtomicPart>(plain_, roots_->atomic_by_id, id); }

  const Settings settings_;
  gc::Heap heap_;
  gc::Mutator mutator_;
  PlainAccess plain_{mutator_};
  base::Random random_{1};
  std::optional<gc::Local<Everything>> all_;
  std::optional<Roots> roots_;
};

TEST_F(Bench7, EveryOperationLeavesTheStructureWhole) {
  ASSERT_EQ(problem(), nullptr);
  for (const auto& operation : kOperations<PlainAccess>) {
    auto c = context();
    unsigned done = 0;
    for (unsigned i = 0; i < 8; ++i) done += operation.run(c).failed ? 0 : 1;
    EXPECT_NE(done, 0U) << operation.name;
    ASSERT_EQ(problem(), nullptr) << operation.name;
  }
}

TEST_F(Bench7, DamageIsSeen) {
  struct Row {
    std::string_view says;
    void (*damage)(Bench7&);
  };
  for (const Row& row : {
           Row{"x and y of an atomic part are not neighbours",
               [](Bench7& b) { b.part(7)->x.init(b.part(7)->y.slot() + 5); }},
           Row{"an atomic part is in the index under another date",
               [](Bench7& b) { b.part(7)->date.init(b.part(7)->date.slot() + 1); }},
           Row{"a text is damaged",
               [](Bench7& b) {
                 auto* const document = map_find<Document>(b.plain_, b.roots_->documents, 3);
                 static_cast<Text*>(document->text.slot().load())->at<gc::Value<char>>(100).init('#');
               }},
           Row{"an atomic part has another number of connections",
               [](Bench7& b) {
                 const gc::Local<List> to(b.mutator_, static_cast<List*>(b.part(7)->to.slot().load()));
                 b.plain_.write(to, &List::count, std::uint64_t{5});
               }},
           Row{"an atomic part is not in its index",
               [](Bench7& b) { map_remove(b.plain_, b.roots_->atomic_by_id, 7); }},
           Row{"a composite part and a base assembly do not know each other",
               [](Bench7& b) {
                 const gc::Local<Assembly> base(b.mutator_, map_find<Assembly>(b.plain_, b.roots_->bases, 1));
                 const gc::Local<List> children(b.mutator_, b.plain_.read(base, &Assembly::children));
                 const gc::Local<CompositePart> first(b.mutator_, list_at<CompositePart>(b.plain_, children, 0));
                 list_remove(b.plain_, children, first);
               }},
           Row{"a number is lost", [](Bench7& b) { take(b.plain_, b.roots_->base_ids); }},
           Row{"an assembly has another parent",
               [](Bench7& b) {
                 const gc::Local<Assembly> base(b.mutator_, map_find<Assembly>(b.plain_, b.roots_->bases, 1));
                 b.plain_.write(base, &Assembly::super, nullptr);
               }},
       }) {
    roots_.reset();
    *all_ = make_roots(plain_, settings_.sizes);
    roots_.emplace(mutator_, all_->get());
    make_everything(context());
    ASSERT_EQ(problem(), nullptr);
    row.damage(*this);
    ASSERT_NE(problem(), nullptr) << row.says;
    EXPECT_EQ(problem(), row.says);
  }
}

TEST_F(Bench7, MapsAreOrderedAndFindWhatIsInThem) {
  const gc::Local<Map> map(mutator_, make_map(plain_));
  std::map<std::uint64_t, AtomicPart*> expected;
  gc::Local<AtomicPart> value(mutator_);
  for (unsigned i = 0; i < 3000; ++i) {
    const std::uint64_t key = random_.below(200);
    if (const auto found = expected.find(key); found != expected.end()) {
      EXPECT_EQ(map_find<AtomicPart>(plain_, map, key), part(1 + key));
      EXPECT_TRUE(map_remove(plain_, map, key));
      expected.erase(found);
    } else {
      EXPECT_EQ(map_find<AtomicPart>(plain_, map, key), nullptr);
      EXPECT_FALSE(map_remove(plain_, map, key));
      value = part(1 + key);
      map_insert(plain_, map, key, value);
      expected[key] = nullptr;
    }
    if (i % 100 != 0) continue;
    std::vector<std::uint64_t> keys, range;
    for (const auto& [one, unused] : expected)
      if (one >= 50 && one < 150) keys.push_back(one);
    map_walk<AtomicPart>(plain_, map, 50, 150, [&](std::uint64_t one, const gc::Local<AtomicPart>&) {
      range.push_back(one);
      return true;
    });
    EXPECT_EQ(range, keys);
  }
}

std::vector<std::size_t> drawn(const Mix& mix, bool even, std::uint64_t operations, std::uint64_t seed) {
  base::Random random(seed);
  Draws draws(mix, even, operations);
  std::vector<std::size_t> all;
  for (std::uint64_t i = 0; i < operations; ++i) all.push_back(draws.next(random));
  return all;
}

// The most by which an operation comes oftener or more rarely than its share says.
double furthest(const Mix& mix, const std::vector<std::size_t>& all) {
  std::array<unsigned, kCategories> kinds{};
  for (const auto& operation : kOperations<PlainAccess>) ++kinds[Mix::index(operation.category)];
  double most = 0;
  for (std::size_t i = 0; i < kOperationCount; ++i) {
    const std::size_t category = Mix::index(kOperations<PlainAccess>[i].category);
    const double expected = mix.share(category) / kinds[category] * static_cast<double>(all.size());
    const auto times = static_cast<double>(std::count(all.begin(), all.end(), i));
    most = std::max(most, std::abs(times - expected));
  }
  return most;
}

TEST(Bench7Draws, EvenOnesComeAsOftenAsTheirShareSaysInAnOrderOfTheirSeed) {
  const Mix mix({.read_share = 0.9, .long_traversals = true, .structural = true});
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const std::uint64_t operations : {1, 60, 180, 4096})
      EXPECT_LT(furthest(mix, drawn(mix, true, operations, seed)), 1.000001) << operations << " seed " << seed;
    EXPECT_LT(furthest(mix, drawn(mix, true, 2 * 4096, seed)), 2.000001) << "two rounds, seed " << seed;
    EXPECT_GT(furthest(mix, drawn(mix, false, 4096, seed)), 5) << "by chance, seed " << seed;
    EXPECT_NE(drawn(mix, true, 180, seed), drawn(mix, true, 180, seed + 1));
  }
  // By chance in its order too: neighbours of the catalogue do not follow one another.
  const auto all = drawn(mix, true, 180, 1);
  EXPECT_FALSE(std::is_sorted(all.begin(), all.end()));
  EXPECT_FALSE(std::is_sorted(all.rbegin(), all.rend()));
}

TEST(Bench7Draws, OfOneOperationAloneIsThatOne) {
  const Mix mix(std::size_t{7});
  for (const bool even : {false, true})
    for (const std::size_t one : drawn(mix, even, 50, 3)) EXPECT_EQ(one, 7U);
}

}  // namespace
}  // namespace loam::workloads::managed::bench7
