// Self-registering plug-ins: an intrusive list filled by static objects, without allocation.
//   const base::Registration<Workload> registration{Workload{...}};     // at namespace scope, in the plug-in's file
//   for (const auto& workload : base::registered<Workload>()) ...
// The order is that of the names, so that listings do not depend on the link order.
// Caveat: registering objects belong into executables or CMake object libraries; a static archive drops them silently.
#pragma once

#include <string_view>

namespace loam::base {

template <class Entry>  // Entry has a member `name`
class Registration {
 public:
  explicit Registration(const Entry& entry) noexcept : entry_(entry) {
    auto** place = &first();
    while (*place != nullptr && std::string_view((*place)->entry_.name) < std::string_view(entry_.name))
      place = &(*place)->next_;
    next_ = *place;
    *place = this;
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  class Iterator {
   public:
    explicit Iterator(const Registration* at) noexcept : at_(at) {}
    const Entry& operator*() const noexcept { return at_->entry_; }
    Iterator& operator++() noexcept {
      at_ = at_->next_;
      return *this;
    }
    bool operator==(const Iterator&) const noexcept = default;

   private:
    const Registration* at_;
  };

  // Function-local, so that the list exists before any static object of another file registers.
  static Registration*& first() noexcept {
    static constinit Registration* head = nullptr;
    return head;
  }

 private:
  const Entry entry_;
  Registration* next_;
};

template <class Entry>
struct Registered {
  auto begin() const noexcept { return typename Registration<Entry>::Iterator(Registration<Entry>::first()); }
  auto end() const noexcept { return typename Registration<Entry>::Iterator(nullptr); }
};

template <class Entry>
Registered<Entry> registered() noexcept {
  return {};
}

// The entry called `name`, or null.
template <class Entry>
const Entry* find_registered(std::string_view name) noexcept {
  for (const auto& entry : registered<Entry>())
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace loam::base
