// The driver's calls for each algorithm that tests run over: see erased_driver.hpp.
#include "tests/harness/erased_driver.hpp"

#include "runtime/base/check.hpp"
#include "runtime/tm/algorithms.hpp"

namespace loam::tests {
namespace {

#ifdef LOAM_TEST_ALGORITHMS
using Compiled = tm::AlgorithmList<LOAM_TEST_ALGORITHMS>;
#else
using Compiled = tm::Algorithms;
#endif

template <class Tx, class U>
U load(void* tx, const U* address) {
  return static_cast<Tx*>(tx)->template load<U>(address);
}

template <class Tx>
constexpr Accesses accesses_of() {
  Accesses accesses{&load<Tx, std::uint8_t>, &load<Tx, std::uint16_t>, &load<Tx, std::uint32_t>,
                    &load<Tx, std::uint64_t>, nullptr};
  if constexpr (requires(Tx& tx, tm::Word* address) { tx.store(address, 0, 0); })
    accesses.store = [](void* tx, tm::Word* address, tm::Word value, tm::Word mask) {
      static_cast<Tx*>(tx)->store(address, value, mask);
    };
  return accesses;
}
template <class Tx>
constexpr Accesses kAccesses = accesses_of<Tx>();

// The body as the driver wants it: it takes any transaction.
struct Body {
  const ErasedBody& erased;

  template <class Tx>
  void operator()(Tx& tx) const {
    erased.call(erased.object, ErasedTx(tx.descriptor(), &tx, kAccesses<Tx>));
  }
};

template <class A>
constexpr DriverCalls kCalls{
    .read_only = [](const ErasedBody& body) { tm::Driver<A>::read_only(Body{body}); },
    .update = [](const ErasedBody& body) { tm::Driver<A>::update(Body{body}); },
    .update_that_commits_on_throw =
        [](const ErasedBody& body) { tm::Driver<A>::template update<tm::OnThrow::commit>(Body{body}); },
    .irrevocable = [](const ErasedBody& body) { tm::Driver<A>::irrevocable(Body{body}); },
    .closed = [](const ErasedBody& body) { return tm::Driver<A>::closed(Body{body}); },
    .or_else = [](const ErasedBody& first,
                  const ErasedBody& second) { tm::Driver<A>::or_else(Body{first}, Body{second}); },
    .cancel = [] { tm::Driver<A>::cancel(); },
    .wait_for_change = [] { tm::Driver<A>::wait_for_change(); },
    .release_read = [](const void* object, std::size_t bytes) { tm::Driver<A>::release_read(object, bytes); },
};

}  // namespace

const DriverCalls& driver_calls(std::string_view algorithm) {
  const DriverCalls* calls = nullptr;
  Compiled::with<false>(algorithm, [&]<class A>() { calls = &kCalls<A>; });
  LOAM_CHECK(calls != nullptr, "tests: erased_driver.cpp was not compiled for {}", algorithm);
  return *calls;
}

}  // namespace loam::tests
