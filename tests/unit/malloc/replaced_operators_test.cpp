// A program with a plain new and delete of its own: the other forms, which are the library's, call them, as the
// standard says of the forms that the program has not replaced. Its blocks begin 16 bytes into one of malloc's, so a
// form that went past it would free an address that malloc never returned.
#include "tests/unit/malloc/blocks.hpp"

#include <cstdlib>
#include <new>

namespace {
long made = 0, freed = 0;
bool refuses = false;
constexpr std::size_t kPrefix = 16;
}  // namespace

void* operator new(std::size_t bytes) {
  auto* const block = refuses ? nullptr : static_cast<char*>(std::malloc(bytes + kPrefix));
  if (block == nullptr) throw std::bad_alloc();
  ++made;
  return block + kPrefix;
}
void operator delete(void* block) noexcept {
  if (block == nullptr) return;
  ++freed;
  std::free(static_cast<char*>(block) - kPrefix);
}

namespace loam::tests {
namespace {

TEST(ReplacedOperators, TheOtherFormsAreTheLibrarys) {
  for (const char* name : {"_Znam", "_ZnwmRKSt9nothrow_t", "_ZdlPvm", "_ZdaPv", "_ZdaPvm"})
    EXPECT_EQ(object_of(dlsym(RTLD_DEFAULT, name)), kLibrary) << name;
  EXPECT_NE(object_of(dlsym(RTLD_DEFAULT, "_Znwm")), kLibrary);
}

TEST(ReplacedOperators, EachFormCallsTheProgramsOwn) {
  const long made_before = made, freed_before = freed;
  const std::size_t n = opaque<std::size_t>(100);
  ::operator delete(::operator new(n), n);
  ::operator delete(::operator new(n), std::nothrow);
  ::operator delete(::operator new(n, std::nothrow));
  ::operator delete[](::operator new[](n));
  ::operator delete[](::operator new[](n), n);
  ::operator delete[](::operator new[](n), std::nothrow);
  ::operator delete[](::operator new[](n, std::nothrow), n);
  EXPECT_EQ(made - made_before, 7);
  EXPECT_EQ(freed - freed_before, 7);
}

TEST(ReplacedOperators, NothrowFormsCatchWhatItThrows) {
  const std::size_t n = opaque<std::size_t>(100);
  refuses = true;
  void* const one = ::operator new(n, std::nothrow);
  void* const many = ::operator new[](n, std::nothrow);
  refuses = false;
  EXPECT_EQ(one, nullptr);
  EXPECT_EQ(many, nullptr);
}

TEST(ReplacedOperators, AlignedFormsStayWithTheLibrary) {
  const long made_before = made;
  constexpr auto kLine = std::align_val_t{64};
  ::operator delete(::operator new(100, kLine), 100, kLine);
  ::operator delete[](::operator new[](100, kLine, std::nothrow), 100, kLine);
  EXPECT_EQ(made, made_before);
}

}  // namespace
}  // namespace loam::tests
