// Batches that meet a thread's end, each interleaving forced at a test point of the heap.
#include "runtime/heap/compositions/loam.hpp"
#include "runtime/platform/affinity.hpp"
#include "tests/harness/heaps.hpp"
#include "tests/harness/interpose.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace loam::heap {
namespace {

using TestHeap = Heap<LoamComposition<tests::NoThreadsHook, tests::DyingFaults>>;
using Blocks = std::vector<std::byte*>;
using tests::Interpose;

// A thread takes the idle heap that its processor left last: on one processor it is clear which one that is.
class OneProcessor : public testing::Environment {
  void SetUp() override {
    unsigned first = 0;
    platform::allowed_cpus(std::span(&first, 1));
    ASSERT_TRUE(platform::pin_this_thread(first));  // and every thread that it makes
  }
};
const testing::Environment* const one_processor = testing::AddGlobalTestEnvironment(new OneProcessor);

constexpr std::size_t kBytes = 700;
constexpr std::size_t kBatch = 24;  // of so many bytes each, at least one batch

Blocks some(std::size_t count) { return tests::filled_blocks<TestHeap>(count, kBytes, 3); }
constexpr auto free_all = tests::free_all<TestHeap>;
constexpr auto in_a_thread = [](auto body) { tests::in_a_thread<TestHeap>(body); };

// A thread that has its heap already and does what it is told: it takes no lock of the registry for it.
class Attached {
 public:
  Attached() : thread_([this] { serve(); }) {
    tell([] { TestHeap::deallocate(TestHeap::allocate(kBytes)); });
  }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;
  ~Attached() {
    tell([] { TestHeap::thread_exit(); });
    stage_ = Stage::over;
    thread_.join();
  }

  void tell(std::function<void()> work) {
    work_ = std::move(work);
    stage_ = Stage::asked;
    while (stage_ == Stage::asked) platform::yield();
  }

 private:
  enum class Stage { idle, asked, over };

  void serve() {
    for (Stage now; (now = stage_) != Stage::over;) {
      if (now == Stage::asked) {
        work_();
        stage_ = Stage::idle;
      }
      platform::yield();
    }
  }

  std::function<void()> work_;
  std::atomic<Stage> stage_{Stage::idle};
  std::thread thread_;
};

void expect_nothing_is_in_use() {
  TestHeap::trim();
  TestHeap::thread_exit();
  EXPECT_EQ(tests::verified<TestHeap>(), "");
  EXPECT_EQ(TestHeap::statistics().committed_bytes, 0u);
}

TEST(Handover, TwoBatchesThatMeetBothArrive) {
  LOAM_NEEDS_POINTS();
  const Blocks blocks = some(2 * kBatch);
  const Blocks half(blocks.begin(), blocks.begin() + kBatch), rest(blocks.begin() + kBatch, blocks.end());
  std::thread([&] {
    bool reached;
    {
      const Interpose amid("heap.pushing", 0, [&] {
        free_all(rest);
        TestHeap::thread_exit();
      });
      free_all(half);
      TestHeap::thread_exit();
      reached = amid.reached();
    }
    EXPECT_TRUE(reached);
  }).join();
  const std::set<std::byte*> before(blocks.begin(), blocks.end());
  const Blocks again = some(2 * kBatch);
  for (std::byte* const block : again) EXPECT_TRUE(before.contains(block));
  free_all(again);
  expect_nothing_is_in_use();
}

TEST(Handover, ABatchThatComesWhileOthersAreTakenWaitsForTheNextTime) {
  LOAM_NEEDS_POINTS();
  for (const char* const point : {"heap.taking", "heap.taken"}) {
    const Blocks blocks = some(2 * kBatch);
    const Blocks half(blocks.begin(), blocks.begin() + kBatch), rest(blocks.begin() + kBatch, blocks.end());
    const auto free_there = [](const Blocks& these) {
      free_all(these);
      TestHeap::thread_exit();
    };
    std::thread([&] { free_there(half); }).join();
    {
      const Interpose amid(point, 0, [&] { free_there(rest); });
      Blocks more;
      while (more.size() < 5000 && !amid.reached()) more.push_back(tests::filled<TestHeap>(kBytes, 4));
      EXPECT_TRUE(amid.reached()) << point;
      free_all(more);
    }
    expect_nothing_is_in_use();
  }
}

// Between the push and the look at the owner's state.
TEST(Handover, TheOwnerMayLeaveWhileABatchIsOnItsWay) {
  LOAM_NEEDS_POINTS();
  Blocks blocks;
  Attached owner;
  owner.tell([&] { blocks = some(kBatch); });
  std::thread([&] {
    const Interpose amid("heap.sent", 0, [&] { owner.tell([] { TestHeap::thread_exit(); }); });
    free_all(blocks);
    TestHeap::thread_exit();
    EXPECT_TRUE(amid.reached());
  }).join();
  expect_nothing_is_in_use();
}

// Between the last look into the inbox and the state that tells senders to tend the heap.
TEST(Handover, ABatchThatComesAsTheOwnerLeavesGoesToWhoeverComesNext) {
  LOAM_NEEDS_POINTS();
  for (const bool adopted : {true, false}) {
    Blocks blocks;
    Attached freeing;
    std::thread([&] {
      blocks = some(kBatch);
      const Interpose amid("heap.left", 0, [&] { freeing.tell([&] { free_all(blocks); }); });
      TestHeap::thread_exit();
      EXPECT_TRUE(amid.reached());
    }).join();
    if (adopted) {
      const std::set<std::byte*> before(blocks.begin(), blocks.end());
      in_a_thread([&] {
        const Blocks again = some(kBatch);
        unsigned known = 0;
        for (std::byte* const block : again) known += before.contains(block) ? 1 : 0;
        EXPECT_GT(known, 0u);
        free_all(again);
      });
    }
    freeing.tell([] { TestHeap::thread_exit(); });
    expect_nothing_is_in_use();
  }
}

TEST(Handover, ABatchThatComesAsTheOwnerLeavesIsTakenInByTheOwner) {
  LOAM_NEEDS_POINTS();
  const std::uint64_t before = TestHeap::statistics().slab_bytes;
  Attached freeing;
  std::thread([&] {
    const Blocks blocks = some(kBatch);
    const Interpose amid("heap.leaving", 0, [&] {
      freeing.tell([&] {
        free_all(blocks);
        TestHeap::thread_exit();  // which sends what is left of them
      });
    });
    TestHeap::thread_exit();
    EXPECT_TRUE(amid.reached());
  }).join();
  EXPECT_EQ(TestHeap::statistics().slab_bytes, before) << "all is back, though nobody sends any more";
  expect_nothing_is_in_use();
}

// A heap that was idle when its sender looked belongs to a new thread when the sender has the lock.
TEST(Handover, AnIdleHeapMayBeTakenBeforeItsSenderTendsIt) {
  LOAM_NEEDS_POINTS();
  Blocks blocks;
  in_a_thread([&] { blocks = some(kBatch); });
  Attached freeing;  // takes the idle heap; the next thread makes one
  Blocks others;
  in_a_thread([&] { others = some(kBatch); });
  freeing.tell([&] {
    const Interpose amid("heap.tending", 0, [] {
      const Blocks own = some(10);
      free_all(own);
      TestHeap::thread_exit();
    });
    free_all(others);
    EXPECT_TRUE(amid.reached());
  });
  freeing.tell([&] { free_all(blocks); });
  freeing.tell([] { TestHeap::thread_exit(); });
  expect_nothing_is_in_use();
}

// Who finds that another thread tends the heap goes on at once, and its batch is taken in all the same.
TEST(Handover, ABatchThatComesWhileAnotherThreadTendsIsTakenInByThatOne) {
  LOAM_NEEDS_POINTS();
  const std::uint64_t before = TestHeap::statistics().slab_bytes;
  Attached tending, sending;  // both have heaps: neither takes the idle one
  Blocks blocks;
  in_a_thread([&] { blocks = some(2 * kBatch); });
  const Blocks first(blocks.begin(), blocks.begin() + kBatch), rest(blocks.begin() + kBatch, blocks.end());
  tending.tell([&] {
    free_all(first);
    const Interpose amid("heap.taken", 0, [&] {
      sending.tell([&] {
        free_all(rest);
        TestHeap::thread_exit();  // which sends what is left of them
      });
    });
    TestHeap::thread_exit();  // the same: what it sends last is what it tends for
    EXPECT_TRUE(amid.reached());
  });
  EXPECT_EQ(TestHeap::statistics().slab_bytes, before) << "all is back, though nobody sends any more";
  expect_nothing_is_in_use();
}

// A heap that somebody tends is nobody's to take: the next thread does not wait for it.
TEST(Handover, AHeapThatIsBeingTendedIsPassedBy) {
  LOAM_NEEDS_POINTS();
  const auto heap_of = [](const std::byte* block) {
    return TestHeap::ThreadHeap::owner_key_of(TestHeap::word_of(block));
  };
  Blocks blocks;
  Attached freeing;
  in_a_thread([&] { blocks = some(kBatch); });
  const Key tended = heap_of(blocks.front());
  Key taken = tended;
  freeing.tell([&] {
    const Interpose amid("heap.taken", 0, [&] {
      std::byte* const own = tests::filled<TestHeap>(kBytes, 4);
      taken = heap_of(own);
      TestHeap::deallocate(own);
      TestHeap::thread_exit();
    });
    free_all(blocks);
    EXPECT_TRUE(amid.reached());
  });
  EXPECT_NE(taken, tended);
  freeing.tell([] { TestHeap::thread_exit(); });
  expect_nothing_is_in_use();
}

}  // namespace
}  // namespace loam::heap
