#include "runtime/base/registry.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace loam::base {
namespace {

struct Plugin {
  std::string_view name;
  int value;
};

const Registration<Plugin> second{Plugin{"second", 2}};
const Registration<Plugin> first{Plugin{"first", 1}};
const Registration<Plugin> third{Plugin{"third", 3}};

struct Other {
  std::string_view name;
};

TEST(Registry, ListsByNameWhateverTheOrderOfRegistration) {
  std::vector<std::string_view> names;
  for (const auto& plugin : registered<Plugin>()) names.push_back(plugin.name);
  EXPECT_EQ(names, (std::vector<std::string_view>{"first", "second", "third"}));
}

TEST(Registry, FindsByName) {
  ASSERT_NE(find_registered<Plugin>("second"), nullptr);
  EXPECT_EQ(find_registered<Plugin>("second")->value, 2);
  EXPECT_EQ(find_registered<Plugin>("fourth"), nullptr);
}

TEST(Registry, TypesHaveListsOfTheirOwn) {
  for (const auto& other : registered<Other>()) FAIL() << other.name;
}

}  // namespace
}  // namespace loam::base
