// List: a sorted, singly linked list of data, which carries its size.
//   Source the list of the STAMP applications (Cao Minh et al., IISWC 2008), by its description.
//   Cost   O(n) per operation; a step is one read. Every change writes the size, so all changes of a list conflict.
//   Data   a small value, often a pointer; it never changes once it is in the list, and so is read plainly.
//   Order::compare(a, b) is negative, 0 or positive as a comes before, with or after b. It is called inside of
//   transactions and must read only what they do not change. SortedList, without size or order, is for keys alone.
//   Insertion and look-up read the last link twice, as the published list does: its counts of reads are those of the
//   literature.
//   It may itself be made and destroyed in a transaction, so its destructor does nothing: whoever owns it frees the nodes.
//   Caveat free_nodes(), verify() and for_each() touch memory plainly; no other thread may be inside.
#pragma once

#include "structures/verdict.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>

namespace loam::structures {

// Pointers by their addresses.
struct ByAddress {
  static int compare(const void* a, const void* b) noexcept {
    return std::less<const void*>{}(a, b) ? -1 : std::less<const void*>{}(b, a) ? 1 : 0;
  }
};

template <class Data, class Order = ByAddress>
class List {
 public:
  struct Node {
    Data data;
    Node* next;
  };

  List() = default;
  List(const List&) = delete;
  List& operator=(const List&) = delete;

  template <class Access>
  std::int64_t size(Access& access) const {
    return access.read(size_);
  }
  template <class Access>
  bool is_empty(Access& access) const {
    return access.read(first_) == nullptr;
  }
  // The data that comes first, or null.
  template <class Access>
  const Data* first(Access& access) const {
    Node* const node = access.read(first_);
    return node == nullptr ? nullptr : &node->data;
  }

  // What is equal to `key`, the first where there are several; or null.
  template <class Access, class Key>
  const Data* find(Access& access, const Key& key) const {
    Node* const node = access.read(*link_before(access, key));
    return node == nullptr || Order::compare(node->data, key) != 0 ? nullptr : &node->data;
  }

  // Puts it in front of what is equal to it.
  template <class Access>
  void insert(Access& access, const Data& data) {
    Node** const link = link_before(access, data);
    put(access, link, access.read(*link), data);
  }
  // False, and nothing is written, if there is an equal one.
  template <class Access>
  bool insert_if_absent(Access& access, const Data& data) {
    Node** const link = link_before(access, data);
    Node* const node = access.read(*link);
    if (node != nullptr && Order::compare(node->data, data) == 0) return false;
    put(access, link, node, data);
    return true;
  }

  // Takes the first that is equal to `key` out. False, and nothing is written, if there is none.
  template <class Access, class Key>
  bool remove(Access& access, const Key& key) {
    Node** const link = link_before(access, key);
    Node* const node = access.read(*link);
    if (node == nullptr || Order::compare(node->data, key) != 0) return false;
    access.write(*link, access.read(node->next));
    access.write(node->next, nullptr);
    access.destroy(node);
    access.write(size_, access.read(size_) - 1);
    return true;
  }

  // Calls visit(data) for each in order, until it returns false.
  template <class Access, class Visit>
  void visit(Access& access, Visit&& visit) const {
    for (Node* node = access.read(first_); node != nullptr; node = access.read(node->next))
      if (!visit(node->data)) return;
  }

  // Frees all nodes of a list that goes away itself: nothing is written.
  template <class Access>
  void destroy_nodes(Access& access) {
    for (Node* node = access.read(first_); node != nullptr;) {
      Node* const next = access.read(node->next);
      access.destroy(node);
      node = next;
    }
  }

  // The same plainly, at the very end.
  void free_nodes() noexcept {
    for (Node *node = first_, *next; node != nullptr; node = next) {
      next = node->next;
      std::free(node);
    }
    first_ = nullptr;
    size_ = 0;
  }

  // S1 data does not descend (hence no cycle).   S2 the size is the number of nodes.
  Verdict verify() const {
    Verdict verdict;
    for (const Node* node = first_; node != nullptr; node = node->next) {
      ++verdict.elements;
      if (node->next != nullptr && Order::compare(node->data, node->next->data) > 0)
        return {verdict.elements, "S1: data does not descend"};
      // A cycle of equal data does not descend either.
      if (static_cast<std::int64_t>(verdict.elements) > size_) break;
    }
    if (static_cast<std::int64_t>(verdict.elements) != size_) verdict.broken = "S2: the size is the number of nodes";
    return verdict;
  }

  std::size_t elements() const noexcept { return static_cast<std::size_t>(size_); }
  template <class Visit>  // visit(data), in order
  void for_each(Visit&& visit) const {
    for (const Node* node = first_; node != nullptr; node = node->next) visit(node->data);
  }

 private:
  // The link to the first node that does not come before `key`.
  template <class Access, class Key>
  Node** link_before(Access& access, const Key& key) const {
    Node** link = const_cast<Node**>(&first_);
    for (Node* node = access.read(*link); node != nullptr && Order::compare(node->data, key) < 0;
         node = access.read(*link))
      link = &node->next;
    return link;
  }

  template <class Access>
  void put(Access& access, Node** link, Node* after, const Data& data) {
    access.write(*link, access.template create<Node>(data, after));
    access.write(size_, access.read(size_) + 1);
  }

  Node* first_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace loam::structures
