// Signatures: six schedules of two threads whose outcomes tell the designs of transactional memory apart.
//   A row here says what the design of an algorithm demands. One without a row may do whatever is right (kLawful). Rows of
//   algorithms that are not in the list are skipped. The table in docs/internals/algorithms.md says the same:
//   LOAM_UPDATE_DOCS=1 writes it, otherwise it is compared.
//   LOAM_ALGORITHM=NAME   only that one
#include "tests/harness/stepper.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace loam::tests {
namespace {

// How a transaction ended. Sets of them: a design may leave it to its contention manager.
enum Outcome : unsigned {
  commits = 1U << 0,
  commits_old = 1U << 1,  // after it has read the value from before the other's commit
  commits_new = 1U << 2,  // ... from after it
  aborts_at_read = 1U << 3,
  aborts_at_write = 1U << 4,
  aborts_at_commit = 1U << 5,
  waits_at_begin = 1U << 6,
  waits_at_read = 1U << 7,
  waits_at_write = 1U << 8,
  waits_at_commit = 1U << 9,
};
constexpr std::string_view kOutcomeNames[] = {"commits",
                                              "reads the old value, commits",
                                              "reads the new value, commits",
                                              "aborts at its read",
                                              "aborts at its write",
                                              "aborts at its commit",
                                              "waits at its begin",
                                              "waits at its read",
                                              "waits at its write",
                                              "waits at its commit"};

std::string text_of(unsigned outcomes) {
  std::string text;
  for (std::size_t i = 0; i < std::size(kOutcomeNames); ++i)
    if ((outcomes >> i) & 1) text += (text.empty() ? "" : " or ") + std::string(kOutcomeNames[i]);
  return text;
}

struct Pair {
  unsigned a, b;
  std::string text() const { return "A " + text_of(a) + "; B " + text_of(b); }
};

constexpr std::size_t kSchedules = 6;
constexpr std::string_view kScheduleTexts[kSchedules] = {
    "A writes x; B reads x; A commits; B commits",
    "A and B read x; A writes x; B writes x; A commits; B commits",
    "A reads x; B writes to x the value that it has, and y; B commits; A reads y; A commits",
    "A begins; B writes z and commits; A reads z; A commits",
    "A, read-only, reads x; B writes x and commits; A reads y, which nobody writes; A commits",
    "p and q share a record: A reads p; B reads q; A writes p; B writes q; A commits; B commits",
};

struct Row {
  std::string_view algorithm;
  std::array<Pair, kSchedules> outcomes;
};

constexpr unsigned kGivesWayAtWrite = aborts_at_write | waits_at_write;

// What the published designs demand, with the manager `suicide`.
constexpr std::array<Pair, kSchedules> kEncounterTime = {{
    {commits, aborts_at_read},
    {commits, aborts_at_write},
    {aborts_at_read, commits},
    {commits_new, commits},
    {commits, commits},
    {commits, aborts_at_write},
}};
// One attempt at a time: B does not get in before A has ended.
constexpr std::array<Pair, kSchedules> kOneAtATime = {{
    {commits, waits_at_begin},
    {commits, waits_at_begin},
    {commits_old, waits_at_begin},
    {commits_old, waits_at_begin},
    {commits, waits_at_begin},
    {commits, waits_at_begin},
}};
// Of any transactional memory: B never reads what A has not committed, and where both add to what both have read, not
// both commit (run_schedule() looks at that). A row says more.
constexpr unsigned kGivesWay = aborts_at_read | aborts_at_write | aborts_at_commit | waits_at_begin | waits_at_read |
                               waits_at_write | waits_at_commit;
constexpr unsigned kAnyEnd = commits | kGivesWay, kAnyValue = commits_old | commits_new | kGivesWay;
constexpr std::array<Pair, kSchedules> kLawful = {{
    {kAnyEnd, commits_old | kGivesWay},
    {kAnyEnd, kAnyEnd},
    {kAnyValue, kAnyEnd},
    {kAnyValue, kAnyEnd},
    {kAnyEnd, kAnyEnd},
    {kAnyEnd, kAnyEnd},
}};
constexpr Row kRows[] = {
    {"etl-wb", kEncounterTime},
    {"etl-wt", kEncounterTime},
    {"dctl", kEncounterTime},
    {"tl2",
     {{{commits, commits_old},
       {commits, aborts_at_commit},
       {aborts_at_read, commits},
       {aborts_at_read, commits},  // no extension
       {commits, commits},
       {commits, aborts_at_commit}}}},
    {"norec",
     {{{commits, commits_old},
       {commits, aborts_at_commit},
       {commits_new, commits},  // the value of x is what it was
       {commits_new, commits},
       {aborts_at_read, commits},  // its next read validates all, and x has another value
       {commits, commits}}}},      // there are no records
    {"swisstm",
     {{{commits, commits_old},
       {commits, aborts_at_write},
       {aborts_at_read, commits},
       {commits_new, commits},
       {commits, commits},
       {commits, aborts_at_write}}}},
    // Visible readers: whoever writes what another has read has to get past that one.
    {"two-phase",
     {{{commits, aborts_at_read | waits_at_read},
       {kGivesWayAtWrite, commits | kGivesWayAtWrite},
       {commits_old, kGivesWayAtWrite},
       {commits_new, commits},
       {commits, kGivesWayAtWrite},
       {kGivesWayAtWrite, commits | kGivesWayAtWrite}}}},
    {"global-lock", kOneAtATime},
};

const std::array<Pair, kSchedules>& demanded_of(std::string_view algorithm) {
  for (const Row& row : kRows)
    if (row.algorithm == algorithm) return row.outcomes;
  return kLawful;
}
bool allows(const Pair& demanded, const Pair& got) { return (got.a & demanded.a) != 0 && (got.b & demanded.b) != 0; }

// In the table of 2^10 records with stripes of 16 bytes: x, y, z, p on records of their own; q aliases with p.
constexpr tm::Config kConfig{.shift = 4, .records_log2 = 10, .serialise_after = 0};
constexpr std::size_t kPeriodWords = (std::size_t{16} << 10) / sizeof(tm::Word);
alignas(4096) tm::Word space[kPeriodWords + 512];
tm::Word &x = space[0], &y = space[64], &z = space[128], &p = space[192], &q = space[192 + kPeriodWords];

template <class Driver>
unsigned outcome_of(const Stepper<Driver>& stepper, unsigned if_committed = commits) {
  const auto at = static_cast<unsigned>(stepper.at()) - static_cast<unsigned>(Step::begin);
  switch (stepper.fate()) {
    case Fate::committed:
      return if_committed;
    case Fate::aborted:
      return aborts_at_read << (at - 1);
    case Fate::waits:
      return waits_at_begin << at;
    case Fate::running:
      break;
  }
  return 0;
}

// Gives up whoever does not wait first: then what waits can end.
template <class Driver>
void finish(Stepper<Driver>& a, Stepper<Driver>& b) {
  (a.fate() == Fate::waits ? b : a).finish();
  (a.fate() == Fate::waits ? a : b).finish();
}

// Runs schedule `number` (from 1).
template <class Driver>
Pair run_schedule(std::size_t number) {
  Stepper<Driver> a(number == 5 ? Kind::read_only : Kind::update), b(Kind::update);
  unsigned a_committed = commits, b_committed = commits;
  switch (number) {
    case 1:
      a.begin(), a.write(x, 1);
      b.begin();
      b_committed = b.read(x) == 0 ? commits_old : commits_new;
      a.commit(), b.commit();
      break;
    case 2:
      a.begin(), a.read(x);
      b.begin(), b.read(x);
      a.add(x, 1), b.add(x, 1);
      a.commit(), b.commit();
      break;
    case 3:
      a.begin(), a.read(x);
      b.begin(), b.write(x, 0), b.write(y, 1), b.commit();
      a_committed = a.read(y) == 0 ? commits_old : commits_new;
      a.commit();
      break;
    case 4:
      a.begin();
      b.begin(), b.write(z, 1), b.commit();
      a_committed = a.read(z) == 0 ? commits_old : commits_new;
      a.commit();
      break;
    case 5:
      a.begin(), a.read(x);
      b.begin(), b.write(x, 1), b.commit();
      a.read(y), a.commit();
      break;
    case 6:
      a.begin(), a.read(p);
      b.begin(), b.read(q);
      a.add(p, 1), b.add(q, 1);
      a.commit(), b.commit();
      break;
    default:
      ADD_FAILURE() << "schedule " << number;
  }
  const Pair pair{outcome_of(a, a_committed), outcome_of(b, b_committed)};
  finish(a, b);
  // Whatever the design: only what has committed is there, once.
  if (number == 2 || number == 6) {
    EXPECT_EQ(number == 2 ? x : p + q, unsigned{pair.a == commits} + unsigned{pair.b == commits});
  }
  return pair;
}

struct SignatureTest : testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(All, SignatureTest, testing::ValuesIn(Tested::kNames), [](const auto& info) {
  std::string text(info.param);
  for (char& c : text)
    if (c == '-') c = '_';
  return text;
});

TEST_P(SignatureTest, IsWhatTheDesignDemands) {
  const char* const only = std::getenv("LOAM_ALGORITHM");
  if (only != nullptr && GetParam() != only) GTEST_SKIP() << "not the chosen algorithm";
  const Variant variant{GetParam(), "signature", kConfig};
  if (description_of(variant).threads_max < 2) GTEST_SKIP() << "one thread: there is no second one to meet";
  for (std::size_t number = 1; number <= kSchedules; ++number)
    in_variant(variant, [&]<class Driver>() {
      const Pair got = run_schedule<Driver>(number), expected = demanded_of(GetParam())[number - 1];
      EXPECT_TRUE(allows(kLawful[number - 1], got)) << "whatever the design: " << got.text();
      EXPECT_TRUE(allows(expected, got)) << "(" << number << ") " << kScheduleTexts[number - 1]
                                         << "\n  expected: " << expected.text() << "\n  found:    " << got.text();
    });
}

// Both designs of each pair can be told apart by at least one schedule, or are meant to be alike.
TEST(SignatureTableTest, RowsTellTheDesignsApart) {
  const auto family = [](std::string_view name) {
    return name == "etl-wt" || name == "dctl" ? std::string_view("etl-wb") : name;
  };
  for (const Row& one : kRows)
    for (const Row& other : kRows) {
      if (family(one.algorithm) == family(other.algorithm)) continue;
      bool apart = false;
      for (std::size_t i = 0; i < kSchedules; ++i)
        apart |= (one.outcomes[i].a & other.outcomes[i].a) == 0 || (one.outcomes[i].b & other.outcomes[i].b) == 0;
      EXPECT_TRUE(apart) << one.algorithm << " and " << other.algorithm;
    }
}

// ---- the table of the documentation

constexpr std::string_view kBegin = "<!-- outcomes: written by signature_test -->\n";
constexpr std::string_view kEnd = "<!-- outcomes: end -->\n";

std::string table() {
  std::ostringstream out;
  for (std::size_t i = 0; i < kSchedules; ++i) out << i + 1 << ". " << kScheduleTexts[i] << ".\n";
  out << "\n| algorithm |";
  for (std::size_t i = 0; i < kSchedules; ++i) out << " " << i + 1 << " |";
  out << "\n| --- |";
  for (std::size_t i = 0; i < kSchedules; ++i) out << " --- |";
  for (const Row& row : kRows) {
    out << "\n| `" << row.algorithm << "` |";
    for (const Pair& pair : row.outcomes) out << " " << pair.text() << " |";
  }
  out << "\n";
  return out.str();
}

TEST(SignatureTableTest, IsTheOneInTheDocumentation) {
  const auto file = std::filesystem::path(LOAM_SOURCE_ROOT) / "docs/internals/algorithms.md";
  std::ostringstream read;
  read << std::ifstream(file).rdbuf();
  std::string text = read.str();
  const std::size_t begin = text.find(kBegin), end = text.find(kEnd);
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos && begin < end)
      << file << " does not hold the two marks of the table";
  const std::size_t from = begin + kBegin.size();
  if (std::getenv("LOAM_UPDATE_DOCS") != nullptr) {
    text.replace(from, end - from, table());
    std::ofstream(file) << text;
    return;
  }
  EXPECT_EQ(text.substr(from, end - from), table()) << "LOAM_UPDATE_DOCS=1 writes the table anew into " << file;
}

}  // namespace
}  // namespace loam::tests
