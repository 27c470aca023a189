// cfrac: factors a product of two primes by continued fractions, every number a block of its own from malloc.
//   cfrac DIGITS     prints the two factors of a made-up number with about so many digits
//   Source Morrison and Brillhart, "A method of factoring and the factorization of F7", 1975.
//   As the program of that name by Dave Barrett does, it makes a new number for each result and frees the old one.
#include <gmp.h>

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace {

// A number of its own: what is assigned to it is a new block.
class Number {
 public:
  explicit Number(unsigned long value = 0) { mpz_init_set_ui(value_, value); }
  Number(const Number& other) { mpz_init_set(value_, other.value_); }
  Number(Number&& other) noexcept {
    mpz_init(value_);
    mpz_swap(value_, other.value_);
  }
  Number& operator=(Number other) noexcept {
    mpz_swap(value_, other.value_);
    return *this;
  }
  ~Number() { mpz_clear(value_); }

  mpz_ptr get() { return value_; }
  mpz_srcptr get() const { return value_; }

  friend Number operator+(const Number& a, const Number& b) { return made(mpz_add, a, b); }
  friend Number operator-(const Number& a, const Number& b) { return made(mpz_sub, a, b); }
  friend Number operator*(const Number& a, const Number& b) { return made(mpz_mul, a, b); }
  friend Number operator/(const Number& a, const Number& b) { return made(mpz_fdiv_q, a, b); }
  friend Number operator%(const Number& a, const Number& b) { return made(mpz_mod, a, b); }

 private:
  static Number made(void (*operation)(mpz_ptr, mpz_srcptr, mpz_srcptr), const Number& a, const Number& b) {
    Number result;
    operation(result.value_, a.value_, b.value_);
    return result;
  }

  mpz_t value_;
};

// x^2 = y^2 * the product of the base's primes with an odd exponent, modulo the number.
struct Relation {
  Number x, y;
  std::vector<unsigned> exponents;  // of -1 first, then of the primes
};

Number prime_after(unsigned digits, unsigned long lead) {
  Number start;
  mpz_ui_pow_ui(start.get(), 10, digits);
  Number found;
  mpz_nextprime(found.get(), (start * Number(lead)).get());
  return found;
}

std::vector<unsigned long> base_of(const Number& n, std::size_t count) {
  std::vector<unsigned long> primes;
  Number p(2);
  while (primes.size() < count) {
    const unsigned long value = mpz_get_ui(p.get());
    if (value == 2 || mpz_kronecker_ui(n.get(), value) >= 0) primes.push_back(value);
    mpz_nextprime(p.get(), p.get());
  }
  return primes;
}

// Whether a value is a product of the base's primes; their exponents then.
bool smooth(const Number& value, const std::vector<unsigned long>& base, std::vector<unsigned>& exponents) {
  Number rest = value;
  for (std::size_t at = 0; at < base.size(); ++at)
    while (mpz_divisible_ui_p(rest.get(), base[at])) {
      rest = rest / Number(base[at]);
      ++exponents[at + 1];
    }
  return mpz_cmp_ui(rest.get(), 1) == 0;
}

// Pairs of equal primes move into y.
void halve(Relation& relation, const std::vector<unsigned long>& base, const Number& n) {
  relation.exponents[0] %= 2;
  for (std::size_t at = 0; at < base.size(); ++at)
    for (unsigned& exponent = relation.exponents[at + 1]; exponent >= 2; exponent -= 2)
      relation.y = relation.y * Number(base[at]) % n;
}

// A factor from a relation without odd exponents; 1 where it is a trivial one.
Number factor_of(const Number& n, const Relation& even) {
  Number divisor;
  mpz_gcd(divisor.get(), (even.x - even.y).get(), n.get());
  return mpz_cmp(divisor.get(), n.get()) == 0 ? Number(1) : divisor;
}

// Takes in those known relations whose pivot is odd here; returns whether no exponent is odd any more.
bool reduce(Relation& relation, const std::vector<Relation>& pivots, const std::vector<long>& pivot_of,
            const std::vector<unsigned long>& base, const Number& n) {
  for (std::size_t at = 0; at < relation.exponents.size(); ++at) {
    if (relation.exponents[at] == 0) continue;
    if (pivot_of[at] < 0) return false;
    const Relation& pivot = pivots[static_cast<std::size_t>(pivot_of[at])];
    relation.x = relation.x * pivot.x % n;
    relation.y = relation.y * pivot.y % n;
    for (std::size_t other = 0; other < relation.exponents.size(); ++other)
      relation.exponents[other] += pivot.exponents[other];
    halve(relation, base, n);
  }
  return true;
}

// 1 where the fraction repeats before there are relations enough; k: a multiplier, which gives another fraction
Number factored(const Number& n, const Number& k, std::size_t base_size) {
  const Number multiple = n * k;
  const std::vector<unsigned long> base = base_of(multiple, base_size);
  std::vector<Relation> pivots;
  std::vector<long> pivot_of(base.size() + 1, -1);
  Number root;
  mpz_sqrt(root.get(), multiple.get());
  Number p(0), q(1), a(1), a_before(0), quotient = root;
  for (bool negative = true;; negative = !negative) {
    Number next = (quotient * a + a_before) % n;
    a_before = std::exchange(a, std::move(next));
    p = quotient * q - p;
    q = (multiple - p * p) / q;
    if (mpz_cmp_ui(q.get(), 1) == 0) return Number(1);
    quotient = (root + p) / q;
    Relation relation{a, Number(1), std::vector<unsigned>(base.size() + 1)};
    relation.exponents[0] = negative;
    if (!smooth(q, base, relation.exponents)) continue;
    halve(relation, base, n);
    if (reduce(relation, pivots, pivot_of, base, n)) {
      Number found = factor_of(n, relation);
      if (mpz_cmp_ui(found.get(), 1) != 0) return found;
      continue;
    }
    for (std::size_t at = 0; at < relation.exponents.size(); ++at)
      if (relation.exponents[at] == 1) {
        pivot_of[at] = static_cast<long>(pivots.size());
        break;
      }
    pivots.push_back(std::move(relation));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned digits = argc > 1 ? static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10)) : 0;
  if (digits < 10 || digits > 60) {
    std::fprintf(stderr, "cfrac: %s: 10 to 60 digits can be asked for\n", argc > 1 ? argv[1] : "");
    return 2;
  }
  const Number n = prime_after(digits / 2 - 4, 3141) * prime_after(digits - digits / 2 - 4, 5772);
  Number one(1);
  for (unsigned long k = 1; mpz_cmp_ui(one.get(), 1) == 0; ++k) one = factored(n, Number(k), 20 + digits * digits / 4);
  const Number other = n / one;
  const bool ordered = mpz_cmp(one.get(), other.get()) < 0;
  gmp_printf("%Zd = %Zd * %Zd\n", n.get(), (ordered ? one : other).get(), (ordered ? other : one).get());
  return mpz_cmp((one * other).get(), n.get()) == 0 ? 0 : 1;
}
