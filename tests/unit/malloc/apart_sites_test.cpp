// Files of allocation sites: what is read, what is refused, and which calls are of a site.
#include "runtime/malloc/apart_sites.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace loam::tests {
namespace {

using malloc::ApartSites;
using Stack = std::vector<std::uintptr_t>;

constexpr std::uint8_t kId[] = {0x5f, 0x0c};
constexpr std::uintptr_t kBase = 0x7f0000400000;

struct Sites {
  std::unique_ptr<ApartSites> all = std::make_unique<ApartSites>();
  ApartSites::Problem problem;

  explicit Sites(std::string_view text) : problem(all->parse(text)) {}

  const ApartSites::Module* note(std::string_view path, std::span<const std::uint8_t> id, std::uint64_t bytes = 0,
                                 std::uint64_t changed_ns = 0) {
    return all->note_module(path, id, kBase,
                            [&](const ApartSites::Module& module, std::uint64_t& has, std::uint64_t& changed) {
                              has = bytes, changed = changed_ns;
                              return module.path == path;
                            });
  }
  bool lists(std::uintptr_t offset, const Stack& stack = {}) {
    return all->lists(kBase + offset, [](std::uintptr_t) {}, [&] { return stack; });
  }
};

const std::string kHead = "loam-apart 1\n", kModule = kHead + "module build-id 5f0c /bin/a\n";

TEST(ApartSites, ASiteIsACallThatReturnsToItsAddress) {
  Sites sites(kModule + "# 63 % of the time\nsite 0+11d3 # made at a.c:3\n\nsite 0+21d3\n");
  ASSERT_EQ(sites.problem.what, nullptr) << sites.problem.what;
  EXPECT_FALSE(sites.lists(0x11d3)) << "nobody knows where the module is";
  EXPECT_EQ(sites.note("/bin/a", kId), nullptr);
  EXPECT_FALSE(sites.all->sites()[0].reached);
  EXPECT_TRUE(sites.lists(0x11d3));
  EXPECT_TRUE(sites.all->sites()[0].reached);
  EXPECT_FALSE(sites.all->sites()[1].reached);
  EXPECT_TRUE(sites.lists(0x21d3));
  for (const std::uintptr_t other : {0x11d2, 0x11d4, 0x31d3, 0x1d3, 0}) EXPECT_FALSE(sites.lists(other)) << other;
}

TEST(ApartSites, SitesOfAnotherBuildAreNotUsed) {
  Sites sites(kModule + "site 0+11d3\n");
  constexpr std::uint8_t kOther[] = {0x5f, 0x0d};
  const ApartSites::Module* const refused = sites.note("/bin/a", kOther);
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->path, "/bin/a");
  EXPECT_FALSE(sites.lists(0x11d3));
  EXPECT_EQ(sites.note("/bin/a", kOther), nullptr) << "it is named once";
  // Another path does not matter where the build is the same, and another module is none of the file's.
  Sites moved(kModule + "site 0+11d3\n");
  EXPECT_EQ(moved.note("/bin/b", kOther), nullptr);
  EXPECT_FALSE(moved.lists(0x11d3));
  EXPECT_EQ(moved.note("/copy/of/a", kId), nullptr);
  EXPECT_TRUE(moved.lists(0x11d3));
  Sites without(kModule + "site 0+11d3\n");
  EXPECT_NE(without.note("/bin/a", {}), nullptr) << "one without a build ID is another";
}

TEST(ApartSites, AModuleWithoutABuildIdIsKnownByItsFile) {
  const std::string text = kHead + "module file 812 17 /bin/a\nsite 0+11d3\n";
  Sites same(text);
  EXPECT_EQ(same.note("/bin/b", {}, 812, 17), nullptr);
  EXPECT_FALSE(same.lists(0x11d3));
  EXPECT_EQ(same.note("/bin/a", {}, 812, 17), nullptr);
  EXPECT_TRUE(same.lists(0x11d3));
  for (const auto& [bytes, changed_ns] : {std::pair{811, 17}, std::pair{812, 18}}) {
    Sites other(text);
    EXPECT_NE(other.note("/bin/a", {}, static_cast<std::uint64_t>(bytes), static_cast<std::uint64_t>(changed_ns)),
              nullptr);
    EXPECT_FALSE(other.lists(0x11d3));
  }
}

TEST(ApartSites, AStackIsComparedAsFarAsTheFileHasIt) {
  Sites sites(kModule + "site 0+11d3 0+200 0+300\n");
  EXPECT_TRUE(sites.all->needs_stacks());
  EXPECT_EQ(sites.note("/bin/a", kId), nullptr);
  const auto stack = [](std::initializer_list<std::uintptr_t> offsets) {
    Stack all = {1, 2};  // of the library itself
    for (const std::uintptr_t offset : offsets) all.push_back(kBase + offset);
    return all;
  };
  EXPECT_TRUE(sites.lists(0x11d3, stack({0x11d3, 0x200, 0x300})));
  EXPECT_TRUE(sites.lists(0x11d3, stack({0x11d3, 0x200, 0x300, 0x400})));
  EXPECT_FALSE(sites.lists(0x11d3, stack({0x11d3, 0x200, 0x301})));
  EXPECT_FALSE(sites.lists(0x11d3, stack({0x11d3, 0x201, 0x300})));
  EXPECT_FALSE(sites.lists(0x11d3, stack({0x11d3, 0x200})));
  EXPECT_FALSE(sites.lists(0x11d3, stack({})));
  EXPECT_FALSE(Sites(kModule + "site 0+11d3\n").all->needs_stacks());
}

TEST(ApartSites, WhatIsWrongIsNamedWithItsLine) {
  struct Row {
    std::string text;
    unsigned line;
    std::string_view what;
  };
  std::string many = kModule, deep = kModule + "site";
  for (int i = 0; i < 513; ++i) many += "site 0+1\n";
  for (int i = 0; i < 17; ++i) deep += " 0+1";
  const Row rows[] = {
      {"", 1, "is missing"},
      {"loam-apart 2\n", 1, "must be 'loam-apart 1'"},
      {"\n" + kModule, 1, "must be 'loam-apart 1'"},
      {kHead + "sites 0+1\n", 2, "must begin with program, module or site"},
      {kHead + "site 0+1\n", 2, "names a module that no line before has"},
      {kModule + "site 1+1\n", 3, "names a module that no line before has"},
      {kModule + "site\n", 3, "must have a frame"},
      {kModule + "site 0-1\n", 3, "must have frames such as"},
      {kModule + "site 0+\n", 3, "must have frames such as"},
      {kModule + "site 0+11g3\n", 3, "must have frames such as"},
      {kModule + "site 0+1 x\n", 3, "must have frames such as"},
      {kHead + "module build-id 5f0 /bin/a\n", 2, "must have a build ID"},
      {kHead + "module build-id 5F0C /bin/a\n", 2, "must have a build ID"},
      {kHead + "module build-id /bin/a\n", 2, "must have a build ID"},
      {kHead + "module file 812 /bin/a\n", 2, "must have the file's size"},
      {kHead + "module file 812 17 a\n", 2, "must end with an absolute path"},
      {kHead + "module time 17 /bin/a\n", 2, "must be known by build-id or file"},
      {many, 515, "is one site too many"},
      {deep, 3, "has one frame too many"},
  };
  for (const Row& row : rows) {
    Sites sites(row.text);
    ASSERT_NE(sites.problem.what, nullptr) << row.text;
    EXPECT_EQ(sites.problem.line, row.line) << row.text;
    EXPECT_TRUE(std::string_view(sites.problem.what).starts_with(row.what)) << row.text << sites.problem.what;
    EXPECT_EQ(sites.all->sites().size(), 0u) << row.text;
    sites.note("/bin/a", kId);
    EXPECT_FALSE(sites.lists(0x1)) << row.text;
  }
}

}  // namespace
}  // namespace loam::tests
