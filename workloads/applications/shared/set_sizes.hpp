// Set sizes: what the transactions of each site read and wrote, counted exactly. For one thread without synchronisation:
// the sets belong to the application and are the same under any transactional memory that does not abort.
//   SetSync is a synchronisation like `sequential` whose accesses are counted. A word is one of 8 bytes, aligned; a line
//   is one of 64. Cost  each access takes tens of nanoseconds: a run of it measures no time.
#pragma once

#include "structures/plain_access.hpp"
#include "workloads/applications/shared/sites.hpp"
#include "workloads/harness/recorder.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace loam::workloads::applications {

namespace set_sizes {

void begin(unsigned site) noexcept;
void read(const void* address) noexcept;
void wrote(const void* address) noexcept;
void allocated(std::size_t bytes) noexcept;
void freed() noexcept;
void end() noexcept;

// One series record for each site that had a transaction: sets_NAME, with one row. names: begin with "tx_"
void record(Recorder& recorder, std::span<const std::string_view> names);

}  // namespace set_sizes

class SetAccess : public structures::PlainAccess {
 public:
  template <class Field>
  Field read(const Field& field) const noexcept {
    set_sizes::read(&field);
    return PlainAccess::read(field);
  }
  template <class Field>
  void write(Field& field, std::type_identity_t<Field> value) const noexcept {
    set_sizes::wrote(&field);
    PlainAccess::write(field, value);
  }
  template <class Node, class... Values>
  Node* create(Values... values) const noexcept {
    set_sizes::allocated(sizeof(Node));
    return PlainAccess::create<Node>(values...);
  }
  template <class Node>
  void destroy(Node* node) const noexcept {
    set_sizes::freed();
    PlainAccess::destroy(node);
  }
  void* allocate(std::size_t bytes) const noexcept {
    set_sizes::allocated(bytes);
    return PlainAccess::allocate(bytes);
  }
  void release(void* block) const noexcept {
    set_sizes::freed();
    PlainAccess::release(block);
  }
};

struct SetSync {
  static constexpr bool kAlone = true;

  static void at(unsigned site) noexcept { set_sizes::begin(site); }
  template <class F>
  static auto update(F&& f) {
    SetAccess access;
    const auto result = f(access);
    set_sizes::end();
    return result;
  }
  static void note_block(const void*, std::size_t) {}
  static void thread_exit() { SetAccess::hand_over_counts(); }
  static void quiesce() {}
  static std::int64_t live_blocks() { return SetAccess::live_blocks(); }
};

}  // namespace loam::workloads::applications
