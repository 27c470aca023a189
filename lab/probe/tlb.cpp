// tlb: misses of the translation buffers for data (tlb.hpp), of the accesses that valgrind's lackey writes down.
//   loam-tlb geometry                               this processor's buffers, as one JSON object
//   loam-tlb SMALL SMALL_WAYS LARGE LARGE_WAYS SECOND SECOND_WAYS [FILE]
//                                                   reads a trace (standard input, or FILE) and prints one JSON object:
//                                                   once as if all pages had 4 KiB, once as if all had 2 MiB
//   A trace has lines " L ADDRESS,BYTES" (load), " S" (store), " M" (a load and a store of one place: one translation),
//   "I  ADDRESS,BYTES" (instruction, not counted here), and lines of valgrind's own, which begin with "==" or "--".
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <fcntl.h>

#include "tlb.hpp"
#include "tlb_geometry.hpp"

namespace {

using namespace loam::tlb;

constexpr std::size_t kBufferBytes = std::size_t{1} << 20, kLineMax = 4096;

struct Counted {
  explicit Counted(const Shapes& shapes) : small(shapes), large(shapes) {}
  Model small, large;
  std::uint64_t accesses = 0, instructions = 0, unread = 0;
};

// A number in hexadecimal digits, then a comma and a number in decimal ones; false where the line has another form.
bool read_access(const char* at, const char* end, std::uint64_t& address, std::uint64_t& bytes) {
  address = bytes = 0;
  const char* const first = at;
  for (; at < end && *at != ','; ++at) {
    const char c = *at;
    const unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                           : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10U
                                                  : 16U;
    if (digit > 15) return false;
    address = address << 4 | digit;
  }
  if (at == first || at == end || ++at == end) return false;
  for (; at < end; ++at) {
    if (*at < '0' || *at > '9') return false;
    bytes = bytes * 10 + static_cast<std::uint64_t>(*at - '0');
  }
  return true;
}

void read_line(const char* at, const char* end, Counted& into) {
  if (end - at > 2 && at[0] == 'I' && at[1] == ' ') {
    ++into.instructions;
    return;
  }
  std::uint64_t address, bytes;
  if (end - at > 3 && at[0] == ' ' && (at[1] == 'L' || at[1] == 'S' || at[1] == 'M') && at[2] == ' ' &&
      read_access(at + 3, end, address, bytes)) {
    ++into.accesses;
    into.small.access(address, bytes, false);
    into.large.access(address, bytes, true);
    return;
  }
  const bool own = end - at >= 2 && at[0] == at[1] && (at[0] == '=' || at[0] == '-');
  if (at != end && !own) ++into.unread;
}

bool read_trace(int file, Counted& into) {
  std::vector<char> buffer(kBufferBytes);
  std::size_t kept = 0;  // of a line that is not whole yet
  for (;;) {
    const ssize_t n = read(file, buffer.data() + kept, buffer.size() - kept);
    if (n < 0) return false;
    const char *at = buffer.data(), *const end = at + kept + static_cast<std::size_t>(n);
    while (const auto* line_end = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)))) {
      read_line(at, line_end, into);
      at = line_end + 1;
    }
    kept = static_cast<std::size_t>(end - at);
    if (n == 0) {
      read_line(at, end, into);
      return true;
    }
    if (kept > kLineMax) kept = 0, ++into.unread;
    std::memmove(buffer.data(), at, kept);
  }
}

void say(const char* name, const Model& model) {
  std::printf(",\"%s\":{\"translations\":%" PRIu64 ",\"first_misses\":%" PRIu64 ",\"walks\":%" PRIu64
              ",\"pages\":%" PRIu64 "}",
              name, model.translations(), model.first_misses(), model.walks(), model.pages());
}

int usage() {
  std::fprintf(stderr, "usage: loam-tlb geometry | SMALL WAYS LARGE WAYS SECOND WAYS [FILE]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "geometry") == 0) {
    const Geometry g = of_this_processor();
    std::printf("{\"source\":\"%s\",\"first_small\":[%u,%u],\"first_large\":[%u,%u],\"second\":[%u,%u]}\n", g.source,
                g.shapes.first_small.entries, g.shapes.first_small.ways, g.shapes.first_large.entries,
                g.shapes.first_large.ways, g.shapes.second.entries, g.shapes.second.ways);
    return 0;
  }
  if (argc != 7 && argc != 8) return usage();
  Shape shapes[3];
  for (int i = 0; i < 3; ++i) {
    shapes[i] = {static_cast<std::uint32_t>(std::strtoul(argv[1 + 2 * i], nullptr, 10)),
                 static_cast<std::uint32_t>(std::strtoul(argv[2 + 2 * i], nullptr, 10))};
    if (!shapes[i].possible()) {
      std::fprintf(stderr, "%s entries in %s ways: entries / ways must be a power of two\n", argv[1 + 2 * i],
                   argv[2 + 2 * i]);
      return 2;
    }
  }
  const int file = argc == 8 ? open(argv[7], O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
  Counted counted({shapes[0], shapes[1], shapes[2]});
  if (file < 0 || !read_trace(file, counted)) {
    std::perror(argc == 8 ? argv[7] : "standard input");
    return 1;
  }
  std::printf("{\"accesses\":%" PRIu64 ",\"instructions\":%" PRIu64 ",\"unread\":%" PRIu64, counted.accesses,
              counted.instructions, counted.unread);
  say("small", counted.small);
  say("large", counted.large);
  std::printf("}\n");
  return 0;
}
