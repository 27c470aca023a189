// Every function of the interface has the type that GCC expects, and each access reads or writes its bytes alone
// (runtime/itm/interface.hpp).
#include "runtime/itm/interface.hpp"
#include "tests/unit/itm/with_barriers.hpp"

#include <gtest/gtest.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <dlfcn.h>

namespace {

using namespace loam::itm;

// ---- types ------------------------------------------------------------------------------------------------------------

// All pointers are passed alike.
template <class T>
using Passed = std::conditional_t<std::is_pointer_v<T> || std::is_reference_v<T>, void*, T>;
template <class F>
struct SignatureOf;
template <class R, class... A>
struct SignatureOf<R(A...)> {
  using Type = Passed<R>(Passed<A>...);
};
template <class R, class... A>
struct SignatureOf<R(A...) noexcept> : SignatureOf<R(A...)> {};
template <class R, class... A>
struct SignatureOf<R(A..., ...)> {
  using Type = Passed<R>(Passed<A>..., ...);
};
template <class Ours, class Gccs>
constexpr bool kAlike = std::is_same_v<typename SignatureOf<Ours>::Type, typename SignatureOf<Gccs>::Type>;

// With -fgnu-tm GCC declares what it emits as builtins; their attributes do not matter here.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#define AS_GCC_HAS_IT(name) static_assert(kAlike<decltype(_ITM_##name), decltype(__builtin__ITM_##name)>)
#define TYPE_AS_GCC_HAS_IT(name) \
  AS_GCC_HAS_IT(R##name);        \
  AS_GCC_HAS_IT(RaR##name);      \
  AS_GCC_HAS_IT(RaW##name);      \
  AS_GCC_HAS_IT(RfW##name);      \
  AS_GCC_HAS_IT(W##name);        \
  AS_GCC_HAS_IT(WaR##name);      \
  AS_GCC_HAS_IT(WaW##name);      \
  AS_GCC_HAS_IT(L##name)
TYPE_AS_GCC_HAS_IT(U1);
TYPE_AS_GCC_HAS_IT(U2);
TYPE_AS_GCC_HAS_IT(U4);
TYPE_AS_GCC_HAS_IT(U8);
TYPE_AS_GCC_HAS_IT(F);
TYPE_AS_GCC_HAS_IT(D);
TYPE_AS_GCC_HAS_IT(E);
AS_GCC_HAS_IT(LB);
AS_GCC_HAS_IT(commitTransaction);
AS_GCC_HAS_IT(commitTransactionEH);
AS_GCC_HAS_IT(beginTransaction);
AS_GCC_HAS_IT(getTMCloneOrIrrevocable);
AS_GCC_HAS_IT(getTMCloneSafe);
AS_GCC_HAS_IT(malloc);
AS_GCC_HAS_IT(calloc);
AS_GCC_HAS_IT(free);
AS_GCC_HAS_IT(changeTransactionMode);
static_assert(kAlike<decltype(_ITM_abortTransaction), void(std::uint32_t)>);

// What replaces a function of the C library stands where that function's result is used.
#define AS(name, replaced) static_assert(kAlike<decltype(name), decltype(replaced)>)
#define COPY_AS(name, reads, writes)  \
  AS(_ITM_memcpy##name, std::memcpy); \
  AS(_ITM_memmove##name, std::memmove);
LOAM_ITM_COPIES(COPY_AS)
#define SET_AS(name) AS(_ITM_memset##name, std::memset);
LOAM_ITM_SETS(SET_AS)

#pragma GCC diagnostic pop

// ---- names ------------------------------------------------------------------------------------------------------------

std::vector<std::string> all_names() {
  std::vector<std::string> names;
#define TYPE_NAMES(T, name, attributes) \
  for (const char* how : {"R", "RaR", "RaW", "RfW", "W", "WaR", "WaW", "L"}) names.push_back(std::string(how) + #name);
  LOAM_ITM_TYPES(TYPE_NAMES)
#define COPY_NAMES(name, reads, writes) \
  for (const char* what : {"memcpy", "memmove"}) names.push_back(std::string(what) + #name);
  LOAM_ITM_COPIES(COPY_NAMES)
#define SET_NAME(name) names.push_back("memset" #name);
  LOAM_ITM_SETS(SET_NAME)
  for (const char* name : {"LB",
                           "beginTransaction",
                           "commitTransaction",
                           "commitTransactionEH",
                           "abortTransaction",
                           "changeTransactionMode",
                           "getTMCloneOrIrrevocable",
                           "getTMCloneSafe",
                           "registerTMCloneTable",
                           "deregisterTMCloneTable",
                           "malloc",
                           "calloc",
                           "free",
                           "dropReferences",
                           "cxa_allocate_exception",
                           "cxa_free_exception",
                           "cxa_throw",
                           "cxa_begin_catch",
                           "cxa_end_catch",
                           "addUserCommitAction",
                           "addUserUndoAction",
                           "inTransaction",
                           "getTransactionId",
                           "versionCompatible",
                           "libraryVersion",
                           "error"})
    names.emplace_back(name);
  for (std::string& name : names) name.insert(0, "_ITM_");
  for (const char* name : {"nwm", "nam", "nwmRKSt9nothrow_t", "namRKSt9nothrow_t", "dlPv", "dlPvm",
                           "dlPvRKSt9nothrow_t", "dlPvmRKSt9nothrow_t", "daPv", "daPvRKSt9nothrow_t"})
    names.push_back(std::string("_ZGTt") + name);
  return names;
}

TEST(Interface, HasAll173Functions) {
  const std::vector<std::string> names = all_names();
  EXPECT_EQ(names.size(), 173u);
  Dl_info ours{};
  ASSERT_NE(::dladdr(reinterpret_cast<const void*>(&_ITM_libraryVersion), &ours), 0);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    void* const function = ::dlsym(RTLD_DEFAULT, name.c_str());
    ASSERT_NE(function, nullptr);
    Dl_info info{};
    ASSERT_NE(::dladdr(function, &info), 0);
    EXPECT_EQ(std::string_view(info.dli_fname), ours.dli_fname);
  }
}

// ---- what they do -------------------------------------------------------------------------------------------------------

long changes;

// Calls it in a transaction. One that can be cancelled always has barriers.
template <class Body>
void in_transaction(Body body) {
  struct [[gnu::visibility("hidden")]] Call {
    [[gnu::transaction_pure, gnu::noinline]] static void now(Body* called) { (*called)(); }
  };
  Body* const called = &body;
  __transaction_atomic {
    ++changes;
    Call::now(called);
    if (changes < 0) __transaction_cancel;
  }
}

constexpr std::size_t kBytes = 1600, kStart = 300;
std::array<unsigned char, kBytes> area, expected;

void fill_area() {
  for (std::size_t i = 0; i < kBytes; ++i) area[i] = static_cast<unsigned char>(i * 7 + i / 256);
  expected = area;
}

constexpr std::size_t kSizes[] = {0, 1, 7, 8, 9, 63, 255, 256, 257, 265, 300, 511, 512, 513, 600};

using Copy = void* (*)(void*, const void*, std::size_t);

void copies(Copy function, std::size_t to, std::size_t from, std::size_t bytes) {
  fill_area();
  std::memmove(&expected[to], &expected[from], bytes);
  void* returned = nullptr;
  in_transaction([&] { returned = function(&area[to], &area[from], bytes); });
  EXPECT_EQ(returned, &area[to]);
  EXPECT_TRUE(area == expected) << bytes << " bytes from " << from << " to " << to;
}

TEST(Interface, ACopyReturnsItsTargetAndWritesNothingBeside) {
#define COPY_FUNCTIONS(name, reads, writes) {#name, &_ITM_memcpy##name, &_ITM_memmove##name},
  const struct {
    const char* name;
    Copy copy, move;
  } functions[] = {LOAM_ITM_COPIES(COPY_FUNCTIONS)};
  for (const auto& each : functions) {
    SCOPED_TRACE(each.name);
    for (const std::size_t bytes : kSizes) {
      copies(each.copy, kStart, kStart + 650, bytes);
      copies(each.copy, kStart + 3, kStart + 654, bytes);
      copies(each.move, kStart, kStart + 650, bytes);
      copies(each.move, kStart, kStart + 5, bytes);
      copies(each.move, kStart + 5, kStart, bytes);
    }
  }
}

TEST(Interface, ASetReturnsItsTargetAndWritesNothingBeside) {
  using Set = void* (*)(void*, int, std::size_t);
#define SET_FUNCTION(name) &_ITM_memset##name,
  for (const Set function : {LOAM_ITM_SETS(SET_FUNCTION)}) {
    for (const std::size_t bytes : kSizes) {
      for (const std::size_t at : {kStart, kStart + 3}) {
        fill_area();
        std::memset(&expected[at], 0x1a5, bytes);
        void* returned = nullptr;
        in_transaction([&] { returned = function(&area[at], 0x1a5, bytes); });
        EXPECT_EQ(returned, &area[at]);
        EXPECT_TRUE(area == expected) << bytes << " bytes at " << at;
      }
    }
  }
}

// The bytes of a value that count: a long double has ten.
template <class T>
constexpr std::size_t kValueBytes = sizeof(T);
template <>
constexpr std::size_t kValueBytes<long double> = 10;

template <class T>
bool holds(std::size_t at, const T& value) {
  return std::memcmp(&area[at], &value, kValueBytes<T>) == 0;
}

template <class T>
void accesses(std::initializer_list<T (*)(const T*)> reads, std::initializer_list<void (*)(T*, T)> writes,
              void (*note)(const T*)) {
  for (const std::size_t at : {kStart, kStart + 3}) {
    auto* const place = reinterpret_cast<T*>(&area[at]);
    T one{}, other{};
    if constexpr (std::is_integral_v<T>) {
      one = static_cast<T>(0x1122334455667788);
      other = static_cast<T>(0x99aabbccddeeff11);
    } else {
      one = T{} + 3;
      other = T{} - 5;
    }
    for (const auto write : writes) {
      fill_area();
      in_transaction([&] { write(place, one), write(place, other); });
      EXPECT_TRUE(holds(at, other));
      std::memcpy(&expected[at], &area[at], sizeof(T));
      EXPECT_TRUE(area == expected) << "bytes beside those at " << at;
      for (const auto read : reads) {
        T before{}, after{};
        in_transaction([&] { before = read(place), write(place, one), after = read(place), write(place, other); });
        EXPECT_EQ(std::memcmp(&before, &other, kValueBytes<T>), 0);
        EXPECT_EQ(std::memcmp(&after, &one, kValueBytes<T>), 0);
      }
    }
    in_transaction([&] { note(place); });
    EXPECT_TRUE(holds(at, other));
  }
}

#define ACCESSES(T, name)                                                         \
  accesses<T>({&_ITM_R##name, &_ITM_RaR##name, &_ITM_RaW##name, &_ITM_RfW##name}, \
              {&_ITM_W##name, &_ITM_WaR##name, &_ITM_WaW##name}, &_ITM_L##name)

TEST(Interface, EachTypeReadsAndWritesItsBytesAlone) {
  ACCESSES(std::uint8_t, U1);
  ACCESSES(std::uint16_t, U2);
  ACCESSES(std::uint32_t, U4);
  ACCESSES(std::uint64_t, U8);
  ACCESSES(float, F);
  ACCESSES(double, D);
  ACCESSES(long double, E);
  ACCESSES(_Complex float, CF);
  ACCESSES(_Complex double, CD);
}

}  // namespace
