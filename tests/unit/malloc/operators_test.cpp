// The interface of C++: the twenty forms of operator new and delete.
#include "tests/unit/malloc/blocks.hpp"

#include "include/loam/malloc.h"

#include <malloc.h>
#include <cstdlib>
#include <new>
#include <set>

namespace loam::tests {
namespace {

class Operators : public testing::Test {
 protected:
  void TearDown() override {
    std::set_new_handler(nullptr);
    EXPECT_EQ(loam_malloc_verify(), nullptr);
  }
};

constexpr auto kLine = std::align_val_t{64};

TEST_F(Operators, EveryFormIsOurs) {
  for (const char* form : {"_Znwm", "_Znam"})
    for (const char* arguments : {"", "RKSt9nothrow_t", "St11align_val_t", "St11align_val_tRKSt9nothrow_t"}) {
      const std::string name = std::string(form) + arguments;
      EXPECT_EQ(object_of(dlsym(RTLD_DEFAULT, name.c_str())), kLibrary) << name;
    }
  for (const char* form : {"_ZdlPv", "_ZdaPv"})
    for (const char* arguments :
         {"", "m", "RKSt9nothrow_t", "St11align_val_t", "mSt11align_val_t", "St11align_val_tRKSt9nothrow_t"}) {
      const std::string name = std::string(form) + arguments;
      EXPECT_EQ(object_of(dlsym(RTLD_DEFAULT, name.c_str())), kLibrary) << name;
    }
}

TEST_F(Operators, EachFormOfNewMeetsEachFormOfDelete) {
  for (const std::size_t bytes : kSizes) {
    const std::size_t n = opaque(bytes);
    ::operator delete(::operator new(n));
    ::operator delete(::operator new(n), n);
    ::operator delete(::operator new(n), std::nothrow);
    ::operator delete(::operator new(n, std::nothrow), n);
    ::operator delete[](::operator new[](n));
    ::operator delete[](::operator new[](n), n);
    ::operator delete[](::operator new[](n), std::nothrow);
    ::operator delete[](::operator new[](n, std::nothrow), n);
    ::operator delete(::operator new(n, kLine), kLine);
    ::operator delete(::operator new(n, kLine), n, kLine);
    ::operator delete(::operator new(n, kLine), kLine, std::nothrow);
    ::operator delete(::operator new(n, kLine, std::nothrow), n, kLine);
    ::operator delete[](::operator new[](n, kLine), kLine);
    ::operator delete[](::operator new[](n, kLine), n, kLine);
    ::operator delete[](::operator new[](n, kLine), kLine, std::nothrow);
    ::operator delete[](::operator new[](n, kLine, std::nothrow), n, kLine);
  }
}

TEST_F(Operators, EachFormOfDeleteGivesTheBlockBack) {
  using New = void* (*)(std::size_t);
  const New one = [](std::size_t n) { return ::operator new(n); };
  const New many = [](std::size_t n) { return ::operator new[](n); };
  const New one_line = [](std::size_t n) { return ::operator new(n, kLine); };
  const New many_lines = [](std::size_t n) { return ::operator new[](n, kLine); };
  struct Form {
    New make;
    void (*end)(void* block, std::size_t bytes);
  };
  const Form forms[] = {
      {one, [](void* block, std::size_t) { ::operator delete(block); }},
      {one, [](void* block, std::size_t n) { ::operator delete(block, n); }},
      {one, [](void* block, std::size_t) { ::operator delete(block, std::nothrow); }},
      {many, [](void* block, std::size_t) { ::operator delete[](block); }},
      {many, [](void* block, std::size_t n) { ::operator delete[](block, n); }},
      {many, [](void* block, std::size_t) { ::operator delete[](block, std::nothrow); }},
      {one_line, [](void* block, std::size_t) { ::operator delete(block, kLine); }},
      {one_line, [](void* block, std::size_t n) { ::operator delete(block, n, kLine); }},
      {one_line, [](void* block, std::size_t) { ::operator delete(block, kLine, std::nothrow); }},
      {many_lines, [](void* block, std::size_t) { ::operator delete[](block, kLine); }},
      {many_lines, [](void* block, std::size_t n) { ::operator delete[](block, n, kLine); }},
      {many_lines, [](void* block, std::size_t) { ::operator delete[](block, kLine, std::nothrow); }},
  };
  for (const Form& form : forms)
    for (const std::size_t bytes : {100, 40000, 1 << 20})
      EXPECT_LT(kept_of_32_mib(bytes, form.make, form.end), kKeptMax) << "form " << &form - forms << " of " << bytes;
}

TEST_F(Operators, DeleteOfNullDoesNothing) {
  void* const nothing = opaque<void*>(nullptr);
  ::operator delete(nothing);
  ::operator delete(nothing, std::size_t{100});
  ::operator delete(nothing, std::nothrow);
  ::operator delete(nothing, kLine);
  ::operator delete(nothing, std::size_t{100}, kLine);
  ::operator delete(nothing, kLine, std::nothrow);
  ::operator delete[](nothing);
  ::operator delete[](nothing, std::size_t{100});
  ::operator delete[](nothing, std::nothrow);
  ::operator delete[](nothing, kLine);
  ::operator delete[](nothing, std::size_t{100}, kLine);
  ::operator delete[](nothing, kLine, std::nothrow);
}

TEST_F(Operators, NewOfNothingIsABlockOfItsOwn) {
  std::set<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.insert(::operator new(opaque<std::size_t>(0)));
  EXPECT_EQ(blocks.size(), 100u);
  for (void* block : blocks) ::operator delete(block);
}

TEST_F(Operators, NewAligns) {
  for (std::size_t alignment = 1; alignment <= std::size_t{1} << 22; alignment *= 2)
    for (const std::size_t bytes : {1, 100, 5000, 100000}) {
      void* const block = ::operator new(opaque(bytes), std::align_val_t{opaque(alignment)});
      EXPECT_TRUE(is_aligned(block, alignment));
      EXPECT_GE(malloc_usable_size(block), bytes);
      ::operator delete(block, bytes, std::align_val_t{alignment});
      void* const plain = ::operator new(opaque(bytes));
      EXPECT_TRUE(is_aligned(plain, 16));
      ::operator delete(plain, bytes);
    }
}

TEST_F(Operators, NewWithoutMemoryThrowsBadAlloc) {
  for (const std::size_t bytes : {kBytesMax, kBytesMax + 1, SIZE_MAX}) {
    EXPECT_THROW((void)::operator new(opaque(bytes)), std::bad_alloc);
    EXPECT_THROW((void)::operator new[](opaque(bytes)), std::bad_alloc);
    EXPECT_THROW((void)::operator new(opaque(bytes), kLine), std::bad_alloc);
    EXPECT_THROW((void)::operator new[](opaque(bytes), kLine), std::bad_alloc);
  }
}

TEST_F(Operators, NothrowNewWithoutMemoryIsNull) {
  for (const std::size_t bytes : {kBytesMax, kBytesMax + 1, SIZE_MAX}) {
    EXPECT_EQ(::operator new(opaque(bytes), std::nothrow), nullptr);
    EXPECT_EQ(::operator new[](opaque(bytes), std::nothrow), nullptr);
    EXPECT_EQ(::operator new(opaque(bytes), kLine, std::nothrow), nullptr);
    EXPECT_EQ(::operator new[](opaque(bytes), kLine, std::nothrow), nullptr);
  }
}

TEST_F(Operators, NewRefusesAnAlignmentThatIsNone) {
  EXPECT_THROW((void)::operator new(100, std::align_val_t{opaque<std::size_t>(24)}), std::bad_alloc);
  EXPECT_EQ(::operator new(100, std::align_val_t{opaque<std::size_t>(24)}, std::nothrow), nullptr);
}

int handler_calls = 0;

TEST_F(Operators, TheNewHandlerIsCalledUntilThereIsNone) {
  for (int form = 0; form < 4; ++form) {
    handler_calls = 0;
    std::set_new_handler([] {
      if (++handler_calls == 3) std::set_new_handler(nullptr);
    });
    const std::size_t bytes = opaque(SIZE_MAX);
    EXPECT_THROW((void)(form == 0   ? ::operator new(bytes)
                        : form == 1 ? ::operator new[](bytes)
                        : form == 2 ? ::operator new(bytes, kLine)
                                    : ::operator new[](bytes, kLine)),
                 std::bad_alloc);
    EXPECT_EQ(handler_calls, 3) << form;
  }
}

struct Stop {};

TEST_F(Operators, WhatTheNewHandlerThrowsPassesThroughNew) {
  std::set_new_handler([] { throw Stop{}; });
  EXPECT_THROW((void)::operator new(opaque(SIZE_MAX)), Stop);
  EXPECT_THROW((void)::operator new[](opaque(SIZE_MAX)), Stop);
  EXPECT_THROW((void)::operator new(opaque(SIZE_MAX), kLine), Stop);
}

TEST_F(Operators, NothrowNewCallsTheHandlerAndCatchesWhatItThrows) {
  for (int form = 0; form < 4; ++form) {
    handler_calls = 0;
    std::set_new_handler([] {
      if (++handler_calls == 2) throw std::bad_alloc();
    });
    const std::size_t bytes = opaque(SIZE_MAX);
    EXPECT_EQ((form == 0   ? ::operator new(bytes, std::nothrow)
               : form == 1 ? ::operator new[](bytes, std::nothrow)
               : form == 2 ? ::operator new(bytes, kLine, std::nothrow)
                           : ::operator new[](bytes, kLine, std::nothrow)),
              nullptr);
    EXPECT_EQ(handler_calls, 2) << form;
  }
}

}  // namespace
}  // namespace loam::tests
