// ffwd: a server executes all operations; the answers of fifteen clients are in one block.
//   Source      Roghanchi, Eriksson, Basu: "ffwd: delegation is (much) faster than you think", SOSP 2017.
//   How         A client has a request line, which only it writes. The server executes the requests of a group of
//               clients, keeps the answers, and writes them together: values, then a word with a bit per client that
//               changes with each answer. So one transfer of the block serves the whole group.
//   Guarantees  round robin over clients; D1 to D3.   Cost  one miss a request, and two lines a group and round.
//   When not    few clients: an answer waits for those after it in the group.   A result of more than 8 bytes is written
//               into the client's frame.
// Orders
//   ffwd.A  a group's bits: release after the values (announce_light), acquire by the client.  Without it a client could
//           read an old value.
//   server.A, server.B: parts/served.hpp.
#pragma once

#include "runtime/delegation/parts/served.hpp"
#include "runtime/platform/pages.hpp"

#include <cstring>

namespace loam::delegation {

template <Waiting W>
class FfwdAnswers {
 public:
  static constexpr std::size_t kResultBytes = 8;
  static constexpr std::uint32_t kGroup = 15;

  explicit FfwdAnswers(const Settings& settings)
      : waiting_(settings.waiting),
        groups_(static_cast<Group*>(platform::map_lazy_or_die(kGroupsBytes, "the answers of a server"))),
        answered_(static_cast<std::uint32_t*>(platform::map_lazy_or_die(kAnsweredBytes, "the answers of a server"))) {}
  ~FfwdAnswers() {
    platform::unmap(groups_, kGroupsBytes);
    platform::unmap(answered_, kAnsweredBytes);
  }

  static std::uint32_t begin(Cell& cell) noexcept {
    // 0 says that nothing is posted; parity alternates.
    cell.toggled = cell.toggled >= kNumberMax ? 2 - cell.toggled % 2 + 1 : cell.toggled + 1;
    return cell.toggled;
  }
  // The next number has the same parity: the server has seen none of this one's.
  static void take_back(Cell& cell) noexcept { cell.toggled += 1; }
  bool is_posted(const Cell& cell, std::uint32_t number) const noexcept {
    return number != 0 && number != kClaimed && number % 2 != answered_[cell.place];
  }

  void execute(Cell& cell) noexcept {
    // A copy: the request's line stays with the client.
    Operation operation = cell.operation;
    const Outcome outcome = operation.execute();
    LOAM_POINT("ffwd: before an answer");
    const std::uint32_t in_group = cell.place % kGroup;
    if (outcome.threw) {
      // Rare: the exception lies in the request's line.
      std::memcpy(cell.operation.payload, operation.payload, outcome.result_bytes);
      threw_ |= 1u << in_group;
    }
    std::memcpy(&values_[in_group], operation.payload, sizeof values_[in_group]);
    answered_[cell.place] ^= 1;
    pending_[count_++] = &cell;
  }

  void flush(std::uint32_t place) noexcept {
    if (count_ == 0) return;
    Group& group = groups_[place / kGroup];
    std::uint32_t bits = group.bits.load(std::memory_order_relaxed);    // relaxed: the server's own
    std::uint32_t threw = group.threw.load(std::memory_order_relaxed);  // relaxed: the server's own
    for (unsigned i = 0; i < count_; ++i) {
      const std::uint32_t in_group = pending_[i]->place % kGroup;
      group.values[in_group].store(values_[in_group], std::memory_order_relaxed);  // relaxed: published by ffwd.A
      bits ^= 1u << in_group;
      threw = (threw & ~(1u << in_group)) | (threw_ & (1u << in_group));
    }
    group.threw.store(threw, std::memory_order_relaxed);  // relaxed: published by ffwd.A
    platform::announce_light(group.bits, bits);           // ffwd.A, waiting.B
    bool asleep = false;
    // relaxed: ordered by waiting.B
    for (unsigned i = 0; i < count_; ++i) asleep |= pending_[i]->sleeping.load(std::memory_order_relaxed) != 0;
    if (asleep) [[unlikely]]
      wake(group.bits);
    count_ = threw_ = 0;
  }

  bool is_answered(const Cell& cell, std::uint32_t number) const noexcept {
    const std::uint32_t bits = groups_[cell.place / kGroup].bits.load(std::memory_order_acquire);  // ffwd.A
    return (bits >> cell.place % kGroup & 1) == number % 2;
  }
  Answer await(Cell& cell, std::uint32_t number) const noexcept {
    Group& group = groups_[cell.place / kGroup];
    for (std::uint32_t look = 0; !is_answered(cell, number); ++look) {
      if (look < waiting_.looks() || waiting_.looks() == ~0u) {
        waiting_.pause();
        continue;
      }
      // A change of the others' bits wakes in vain.
      const std::uint32_t bits = group.bits.load(std::memory_order_relaxed);  // relaxed: decides whether to sleep
      if ((bits >> cell.place % kGroup & 1) != number % 2) sleep_on(group.bits, cell.sleeping, bits);
    }
    const std::uint32_t in_group = cell.place % kGroup;
    // relaxed, both: ordered by ffwd.A
    if ((group.threw.load(std::memory_order_relaxed) >> in_group & 1) != 0) return {true, cell.operation.payload};
    const std::uint64_t value = group.values[in_group].load(std::memory_order_relaxed);
    std::memcpy(cell.operation.payload, &value, sizeof value);
    return {false, cell.operation.payload};
  }

 private:
  struct alignas(platform::kApartBytes) Group {
    std::atomic<std::uint32_t> bits, threw;
    std::atomic<std::uint64_t> values[kGroup];
  };
  static_assert(sizeof(Group) == 2 * platform::kCacheLineBytes);

#ifdef LOAM_CHECKED
  static constexpr std::uint32_t kNumberMax = 101;  // so that tests come to its end
#else
  static constexpr std::uint32_t kNumberMax = ~0u - 8;
#endif
  static constexpr std::size_t kGroupsBytes = (Roster::kPlacesMax / kGroup + 1) * sizeof(Group);
  static constexpr std::size_t kAnsweredBytes = Roster::kPlacesMax * sizeof(std::uint32_t);

  const W waiting_;
  Group* const groups_;
  // The server's own: the parity of each place's last answer, and what it keeps of the group at hand.
  std::uint32_t* const answered_;
  Cell* pending_[kGroup] = {};
  std::uint64_t values_[kGroup] = {};
  std::uint32_t count_ = 0, threw_ = 0;
};

template <Waiting W = SpinThenSleep>
class Ffwd : public ByServer<FfwdAnswers<W>> {
 public:
  static constexpr Description kDescription{.name = "ffwd",
                                            .summary = "a dedicated thread; the answers of 15 clients in one block",
                                            .paper = "ffwd, SOSP 2017",
                                            .guarantees = "mutual exclusion; round robin over clients",
                                            .means = Means::server};
  static constexpr bool kSleeps = W::kSleeps;

  using ByServer<FfwdAnswers<W>>::ByServer;
};

}  // namespace loam::delegation
