// Every pair of closed(), or_else(), irrevocable(), retry(), cancel() and an exception, one inside the other, against a
// model of a few lines: which writes, blocks and handlers stay, and how the transaction ends.
//   A program: [writes] OUTER { [writes] INNER { [writes] EVENT, a write } a write } a write, with an irrevocable part
//   perhaps at the begin of the outer part, behind the inner one, or at the end; run by update(), by update() that
//   commits what throws, or by irrevocable().
#include "tests/harness/instrumented.hpp"
#include "tests/harness/tm_variants.hpp"
#include "tests/harness/watchdog.hpp"
#include "tests/harness/words.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace loam::tm {
namespace {

enum class Top { update, commits_on_throw, irrevocable };
enum class Part { plain, closed, first_branch, second_branch, irrevocable, caught };
enum class Event { nothing, retry, retry_alone, cancel, exception };
enum class Fixed { never, in_outer, behind_inner, at_the_end };  // where a further irrevocable part is

struct Program {
  Top top;
  Part outer, inner;
  Event event;
  Fixed fixed;
  bool writes_before;

  std::string name() const {
    const auto of = [](const char* what, auto value) {
      return std::string(what) + std::to_string(static_cast<int>(value)) + " ";
    };
    return of("top", top) + of("outer", outer) + of("inner", inner) + of("event", event) + of("fixed", fixed) +
           of("writes_before", writes_before);
  }
};

struct Thrown {};

// Which place of a program has written: words, blocks and commit handlers are counted together.
constexpr unsigned kPlaces = 10;
enum : unsigned { kTop, kOuter, kInner, kBehindEvent, kBehindInner, kEnd, kFixed, kOtherBranch, kRetriedBranch };

// ---- the model

enum class Outcome { done, retried, cancelled, thrown, wants_to_be_alone, fatal };

struct Ending {
  std::array<Word, kPlaces> words{};
  Outcome outcome{};
  bool waited = false;  // until `go` was set
};

class Model {
 public:
  explicit Model(const Program& program) : program_(program) {}

  Ending ending() {
    Ending ending;
    Outcome outcome = attempt(program_.top == Top::irrevocable);
    for (unsigned turn = 0; turn < 4; ++turn) {
      if (outcome == Outcome::wants_to_be_alone) {
        outcome = attempt(true);
      } else if (outcome == Outcome::retried) {
        ending.waited = go_ = true;
        outcome = attempt(false);
      }
    }
    const bool stays =
        outcome == Outcome::done || (outcome == Outcome::thrown && (cannot_be_undone_ || program_.top != Top::update));
    if (stays) ending.words = words_;
    ending.outcome = outcome;
    return ending;
  }

 private:
  using Words = std::array<Word, kPlaces>;

  Outcome attempt(bool alone) {
    words_ = {};
    is_alone_ = alone;
    cannot_be_undone_ = program_.top == Top::irrevocable;
    return statements();
  }

  void write(unsigned place, bool if_so = true) { words_[place] += if_so; }

  Outcome statements() {
    write(kTop, program_.writes_before);
    Outcome outcome = part(program_.outer, [this] { return outer(); });
    if (outcome == Outcome::done) outcome = fix_at(Fixed::at_the_end);
    if (outcome == Outcome::done) write(kEnd);
    return outcome;
  }
  Outcome outer() {
    write(kOuter, program_.writes_before);
    Outcome outcome = fix_at(Fixed::in_outer);
    if (outcome == Outcome::done) outcome = part(program_.inner, [this] { return inner(); });
    if (outcome == Outcome::done) outcome = fix_at(Fixed::behind_inner);
    if (outcome == Outcome::done) write(kBehindInner);
    return outcome;
  }
  Outcome inner() {
    write(kInner, program_.writes_before);
    const Outcome outcome = event();
    if (outcome == Outcome::done) write(kBehindEvent);
    return outcome;
  }

  Outcome event() const {
    const Outcome taken_back = cannot_be_undone_ ? Outcome::fatal : Outcome::retried;
    switch (program_.event) {
      case Event::nothing:
        return Outcome::done;
      case Event::retry:
        return go_ ? Outcome::done : taken_back;
      case Event::retry_alone:
        return go_ || !is_alone_ ? Outcome::done : taken_back;
      case Event::cancel:
        return cannot_be_undone_ ? Outcome::fatal : Outcome::cancelled;
      case Event::exception:
        return Outcome::thrown;
    }
    return Outcome::fatal;
  }

  Outcome fix_at(Fixed place) {
    if (program_.fixed != place) return Outcome::done;
    return part(Part::irrevocable, [this] { return write(kFixed), Outcome::done; });
  }

  // What a body does in a part that can be taken back: undone unless it is done, or cannot be.
  template <class Body>
  Outcome undoable(Body body) {
    const Words before = words_;
    const Outcome outcome = body();
    if (outcome != Outcome::done && !cannot_be_undone_) words_ = before;
    return outcome;
  }

  template <class Body>
  Outcome part(Part kind, Body body) {
    const auto unless_cancelled = [](Outcome outcome) {
      return outcome == Outcome::cancelled ? Outcome::done : outcome;
    };
    switch (kind) {
      case Part::plain:
        return body();
      case Part::caught: {
        const Outcome outcome = body();
        return outcome == Outcome::thrown ? Outcome::done : outcome;
      }
      case Part::irrevocable:
        if (!is_alone_) return Outcome::wants_to_be_alone;
        cannot_be_undone_ = true;
        return body();
      case Part::closed:
        return unless_cancelled(undoable(body));
      case Part::first_branch: {
        const Outcome outcome = undoable(body);
        if (outcome != Outcome::retried) return unless_cancelled(outcome);
        return write(kOtherBranch), Outcome::done;
      }
      case Part::second_branch:
        if (cannot_be_undone_) return write(kRetriedBranch), Outcome::fatal;
        return unless_cancelled(undoable(body));
    }
    return Outcome::fatal;
  }

  const Program& program_;
  Words words_{};
  bool go_ = false, is_alone_ = false, cannot_be_undone_ = false;
};

// ---- the same by the driver

using tests::words;
alignas(1024) Word go, never[16];
int handlers = 0;
std::atomic<int> attempts{0};

// Several words of a record of their own, and several on one.
Word& word_of(unsigned place) { return words[place * 3 + place / 4]; }

template <class Driver>
struct Runner {
  const Program& program;

  template <class Tx>
  static void write(Tx& tx, unsigned place, bool if_so = true) {
    if (!if_so) return;
    tx.write(word_of(place), tx.read(word_of(place)) + 1);
    tx.template create<Word>(Word{place});
    tx.on_commit([] { ++handlers; });
  }

  template <class Tx>
  void statements(Tx& tx) const {
    ++attempts;
    write(tx, kTop, program.writes_before);
    part(program.outer, tx, [this](auto& own) { outer(own); });
    fix_at(Fixed::at_the_end);
    write(tx, kEnd);
  }
  template <class Tx>
  void outer(Tx& tx) const {
    write(tx, kOuter, program.writes_before);
    fix_at(Fixed::in_outer);
    part(program.inner, tx, [this](auto& own) { inner(own); });
    fix_at(Fixed::behind_inner);
    write(tx, kBehindInner);
  }
  template <class Tx>
  void inner(Tx& tx) const {
    write(tx, kInner, program.writes_before);
    if (program.event == Event::retry || (program.event == Event::retry_alone && serial::closed()))
      if (tx.read(go) == 0) Driver::wait_for_change();
    if (program.event == Event::cancel) Driver::cancel();
    if (program.event == Event::exception) throw Thrown{};
    write(tx, kBehindEvent);
  }

  void fix_at(Fixed place) const {
    if (program.fixed == place) Driver::irrevocable([](auto& tx) { write(tx, kFixed); });
  }

  template <class Tx, class Body>
  static void part(Part kind, Tx& tx, Body&& body) {
    switch (kind) {
      case Part::plain:
        return body(tx);
      case Part::caught:
        try {
          body(tx);
        } catch (const Thrown&) {
        }
        return;
      case Part::irrevocable:
        return Driver::irrevocable(body);
      case Part::closed:
        Driver::closed(body);
        return;
      case Part::first_branch:
        return Driver::or_else(body, [](auto& other) { write(other, kOtherBranch); });
      case Part::second_branch:
        return Driver::or_else(
            [](auto& first) {
              write(first, kRetriedBranch);
              if (first.read(never[0]) == 0) Driver::wait_for_change();
            },
            body);
    }
  }

  Outcome run() const {
    const auto body = [this](auto& tx) { statements(tx); };
    try {
      if (program.top == Top::update) Driver::update(body);
      if (program.top == Top::commits_on_throw) Driver::template update<OnThrow::commit>(body);
      if (program.top == Top::irrevocable) Driver::irrevocable(body);
      return Outcome::done;
    } catch (const Thrown&) {
      return Outcome::thrown;
    } catch (const Cancelled&) {
      return Outcome::cancelled;
    }
  }
};

template <class Driver>
void expect_ending(const Program& program, const Ending& expected) {
  for (Word& word : words) word = 0;
  go = 0;
  handlers = 0;
  attempts = 0;
  const auto blocks = [] { return statistics().blocks_allocated - statistics().blocks_freed; };
  const auto blocks_before = blocks();
  std::thread helper;
  if (expected.waited)
    helper = std::thread([] {
      while (attempts == 0) platform::yield();
      Driver::update([](auto& tx) { tx.write(go, Word{1}); });
    });
  const Outcome outcome = Runner<Driver>{program}.run();
  if (helper.joinable()) helper.join();
  EXPECT_EQ(static_cast<int>(outcome), static_cast<int>(expected.outcome)) << program.name();
  Word all = 0;
  for (unsigned place = 0; place < kPlaces; ++place) {
    EXPECT_EQ(word_of(place), expected.words[place]) << "place " << place << " of " << program.name();
    all += expected.words[place];
  }
  EXPECT_EQ(blocks() - blocks_before, all) << program.name();
  EXPECT_EQ(static_cast<Word>(handlers), all) << program.name();
  EXPECT_FALSE(serial::closed()) << program.name();
}

// Whether the program ends the process with the message that says why.
template <class Driver>
void expect_end(const Program& program) {
  int messages[2];
  ASSERT_EQ(pipe(messages), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    dup2(messages[1], STDERR_FILENO);
    go = 0;
    Runner<Driver>{program}.run();
    _exit(0);
  }
  close(messages[1]);
  std::string text;
  char buffer[512];
  for (ssize_t got; (got = read(messages[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  close(messages[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << program.name();
  EXPECT_NE(text.find("in an irrevocable transaction, which nothing can take back"), std::string::npos)
      << program.name() << text;
}

template <class Call>
void for_each_program(Call call) {
  for (const Top top : {Top::update, Top::commits_on_throw, Top::irrevocable})
    for (int outer = 0; outer <= static_cast<int>(Part::caught); ++outer)
      for (int inner = 0; inner <= static_cast<int>(Part::caught); ++inner)
        for (int event = 0; event <= static_cast<int>(Event::exception); ++event)
          for (int fixed = 0; fixed <= static_cast<int>(Fixed::at_the_end); ++fixed)
            for (const bool writes_before : {false, true})
              call(Program{top, static_cast<Part>(outer), static_cast<Part>(inner), static_cast<Event>(event),
                           static_cast<Fixed>(fixed), writes_before});
}

struct OutcomesTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, OutcomesTest, testing::ValuesIn(tests::variants_for(2, {"small_table"})),
                         tests::variant_name);

TEST_P(OutcomesTest, WhatIsInsideWhatStaysOrGoesAsTheModelSays) {
  tests::in_variant(GetParam(), []<class Driver>() {
    for_each_program([](const Program& program) {
      const Ending expected = Model(program).ending();
      if (expected.outcome != Outcome::fatal) expect_ending<Driver>(program, expected);
    });
  });
}

TEST_P(OutcomesTest, WhatNothingCanTakeBackEndsTheProgram) {
  if (tests::kInstrumented) GTEST_SKIP() << "a process for each program";
  tests::in_variant(GetParam(), []<class Driver>() {
    for_each_program([](const Program& program) {
      // Each kind of part once; what differs is the same in all.
      if (program.top != Top::update || !program.writes_before) return;
      if (program.outer != Part::plain && program.inner != Part::plain && program.outer != program.inner) return;
      if (Model(program).ending().outcome == Outcome::fatal) expect_end<Driver>(program);
    });
  });
}

}  // namespace
}  // namespace loam::tm
