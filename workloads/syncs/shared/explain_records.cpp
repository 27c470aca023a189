#include "workloads/syncs/shared/explain_records.hpp"

#include "runtime/platform/pages.hpp"
#include "runtime/tm/blame/explain.hpp"

#include <link.h>
#include <algorithm>
#include <array>

namespace loam::workloads {
namespace {

using tm::explain::Block;
using tm::explain::Conflict;
using tm::explain::Footprint;
using tm::explain::Party;
using tm::explain::Site;
using tm::explain::Touched;

constexpr std::uint64_t kConflictsMax = 8192, kFootprintsMax = 64;
// Of all footprints together: the lab takes 32 MiB of records.
constexpr std::size_t kFootprintBytesMax = std::size_t{12} << 20;
constexpr std::size_t kRowsPerRecord = 256;
constexpr unsigned kWordsPerRow = 32;

// Sites by number, from 1 on; 0 is one that is not known.
class Sites {
 public:
  unsigned number_of(Site site) noexcept {
    if (site == nullptr) return 0;
    const auto end = known_.begin() + size_;
    const auto found = std::find(known_.begin(), end, site);
    if (found == end) {
      if (size_ == known_.size()) return 0;
      known_[size_++] = site;
    }
    return static_cast<unsigned>(found - known_.begin()) + 1;
  }

  void write(Recorder& recorder) const {
    for (unsigned i = 0; i < size_; ++i) {
      Place place{reinterpret_cast<std::uintptr_t>(known_[i])};
      ::dl_iterate_phdr(&Place::look, &place);
      recorder.record("site")
          .field("number", i + 1)
          .field("object", place.object)
          .field("address", place.address - place.base);
      recorder.write();
    }
  }

 private:
  // The object that holds an address, and where the object was loaded; "" names the executable.
  struct Place {
    std::uintptr_t address;
    std::uintptr_t base = 0;
    std::string_view object = "unknown";

    static int look(dl_phdr_info* info, std::size_t, void* out) {
      Place& place = *static_cast<Place*>(out);
      for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& segment = info->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || place.address - info->dlpi_addr - segment.p_vaddr >= segment.p_memsz) continue;
        place.base = info->dlpi_addr;
        place.object = info->dlpi_name;
        return 1;
      }
      return 0;
    }
  };

  std::size_t size_ = 0;
  std::array<Site, 4096> known_{};
};

// Static: nothing of this comes from the allocator under study.
constinit Sites sites;

struct Sharing {
  Recorder& recorder;
  std::uint64_t total = 0, share = 1, seen = 0;  // every `share`-th of `total` is written

  bool takes() noexcept { return seen++ % share == 0; }
};

void put_party(base::JsonLine& line, std::string_view name, const Party& party) {
  line.object(name);
  if (party.word != nullptr) {
    line.field("word", reinterpret_cast<std::uintptr_t>(party.word))
        .field("site", sites.number_of(party.site))
        .field("thread", party.thread);
    if (const Block& block = party.block; block.start != nullptr) {
      line.object("block").field("start", reinterpret_cast<std::uintptr_t>(block.start)).field("bytes", block.bytes);
      line.field("ordinal", block.ordinal).field("thread", block.thread).field("site", sites.number_of(block.site));
      line.end();
    }
  }
  line.end();
}

void write_conflict(void* context, const Conflict& conflict, std::uint64_t weight) {
  auto& sharing = *static_cast<Sharing*>(context);
  if (!sharing.takes()) return;
  auto& line = sharing.recorder.record("conflict");
  line.field("cause", tm::name_of(conflict.cause))
      .field("met", conflict.locked ? "locked" : "newer")
      .field("weight", weight * sharing.share)
      .field("record", conflict.record)
      .field("shift", conflict.shift);
  put_party(line, "mine", conflict.mine);
  put_party(line, "theirs", conflict.theirs);
  sharing.recorder.write();
}

// A block's words [first, first + kWordsPerRow) that were read and written; block 0: not known, first counts from 0.
struct Row {
  std::uintptr_t block;
  std::uint64_t bytes, first;
  std::uint32_t read, written;
};

class FootprintWriter {
 public:
  FootprintWriter(Recorder& recorder, const Footprint& footprint, std::uint64_t number, std::uint64_t weight)
      : recorder_(recorder), footprint_(footprint), number_(number), weight_(weight) {}

  // returns bytes written, about
  std::size_t write(std::span<Touched> scratch) {
    const auto words = scratch.first(std::min(scratch.size(), footprint_.words.size()));
    std::copy_n(footprint_.words.begin(), words.size(), words.begin());
    std::sort(words.begin(), words.end(), [](const Touched& a, const Touched& b) { return a.word < b.word; });
    for (const Touched& touched : words) {
      const auto address = reinterpret_cast<std::uintptr_t>(touched.word);
      const auto block = reinterpret_cast<std::uintptr_t>(touched.block);
      const std::uint64_t index = (address - block) / tm::kWordBytes;
      if (line_ == nullptr || block != row_.block || index - row_.first >= kWordsPerRow) {
        put_row();
        row_ = {block, block == 0 ? 0 : touched.bytes, index, 0, 0};
      }
      (touched.written ? row_.written : row_.read) |= std::uint32_t{1} << (index - row_.first);
    }
    put_row();
    end_record();
    return bytes_;
  }

 private:
  void put_row() {
    if (line_ == nullptr) {
      begin_record();
      return;
    }
    if ((row_.read | row_.written) == 0) return;
    if (rows_ == kRowsPerRecord) {
      end_record();
      begin_record();
    }
    line_->array().value(row_.block).value(row_.bytes).value(row_.first).value(row_.read).value(row_.written).end();
    ++rows_;
  }
  void begin_record() {
    rows_ = 0;
    line_ = &recorder_.record("footprint");
    line_->field("transaction", number_)
        .field("thread", footprint_.thread)
        .field("weight", weight_)
        .field("whole", footprint_.whole)
        .array("rows");
  }
  void end_record() {
    bytes_ += line_->view().size();
    line_->end();
    recorder_.write();
  }

  Recorder& recorder_;
  const Footprint& footprint_;
  const std::uint64_t number_, weight_;
  base::JsonLine* line_ = nullptr;
  Row row_{};
  std::size_t rows_ = 0, bytes_ = 0;
};

struct Footprints : Sharing {
  std::span<Touched> scratch;
  std::size_t bytes = 0;
};

void write_footprint(void* context, const Footprint& footprint, std::uint64_t weight) {
  auto& sharing = *static_cast<Footprints*>(context);
  if (!sharing.takes() || sharing.bytes > kFootprintBytesMax) return;
  sharing.bytes +=
      FootprintWriter(sharing.recorder, footprint, sharing.seen, weight * sharing.share).write(sharing.scratch);
}

}  // namespace

void write_explain_records(Recorder& recorder) {
  using namespace tm::explain;
  Sharing conflicts{recorder};
  for_each_conflict(&conflicts, [](void* s, const Conflict&, std::uint64_t) { ++static_cast<Sharing*>(s)->total; });
  conflicts.share = conflicts.total / kConflictsMax + 1;
  for_each_conflict(&conflicts, write_conflict);
  sites.write(recorder);

  Footprints footprints{{recorder}, {}};
  std::size_t longest = 1;
  for_each_footprint(&footprints,
                     [](void* s, const Footprint&, std::uint64_t) { ++static_cast<Footprints*>(s)->total; });
  for_each_footprint(&longest, [](void* longest_words, const Footprint& footprint, std::uint64_t) {
    auto& words = *static_cast<std::size_t*>(longest_words);
    words = std::max(words, footprint.words.size());
  });
  footprints.share = footprints.total / (kFootprintsMax + 1) + 1;
  const std::size_t bytes = longest * sizeof(Touched);
  footprints.scratch = {static_cast<Touched*>(platform::map_lazy_or_die(bytes, "footprints in order")), longest};
  for_each_footprint(&footprints, write_footprint);
  platform::unmap(footprints.scratch.data(), bytes);
}

}  // namespace loam::workloads
