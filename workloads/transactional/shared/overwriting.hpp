// Overwriting: an access policy that writes each word of a node, with the value that it has, before it destroys the node.
//   So an algorithm with ownership records locks those of the node, and gives them a new version at the commit, as TinySTM's
//   stm_free() does. Attempts that have read the node, or another one of these records, then abort.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace loam::workloads {

template <class Access>
class Overwriting {
 public:
  explicit Overwriting(Access& access) noexcept : access_(&access) {}

  template <class Field>
  Field read(const Field& field) const {
    return access_->read(field);
  }

  template <class Field>
  void write(Field& field, std::type_identity_t<Field> value) const {
    access_->write(field, value);
  }

  template <class Node, class... Values>
  Node* create(Values... values) const {
    return access_->template create<Node>(values...);
  }

  template <class Node>
  void destroy(Node* node) const {
    static_assert(sizeof(Node) % sizeof(std::uint64_t) == 0 && alignof(Node) == alignof(std::uint64_t));
    auto* const words = reinterpret_cast<std::uint64_t*>(node);
    for (std::size_t i = 0; i < sizeof(Node) / sizeof(std::uint64_t); ++i)
      access_->write(words[i], access_->read(words[i]));
    access_->destroy(node);
  }

 private:
  Access* access_;
};

}  // namespace loam::workloads
