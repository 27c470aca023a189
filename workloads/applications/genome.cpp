// genome: a gene is put together again from its overlapping segments.
//   Source: STAMP (Cao Minh et al., IISWC 2008); the algorithm and its inputs as published, written anew.
//   1. Duplicates are removed: twelve insertions into a hash table per transaction. Nearly all find their segment.
//   2. Each unique segment gets a record, which one transaction per prefix length puts into the table of that length.
//      The shortest prefixes have few values, so that their chains hold thousands of nodes: the longest read sets.
//   3. For each length, longest first: ends of records are matched with starts of others, and joined by a transaction.
//   4. One thread writes the sequence. Barriers stand between phases and around each length.
//   What is private to a record's thread is written after the commit: the published code writes it inside.
#include "workloads/applications/shared/application.hpp"
#include "workloads/applications/shared/mersenne_twister.hpp"

#include "runtime/base/format.hpp"
#include "structures/chained_map.hpp"
#include "structures/list.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace loam::workloads::applications {
namespace {

constexpr std::uint64_t kChunk = 12;  // segments per transaction of the first phase
constexpr std::string_view kNucleotides = "ACGT";

constexpr ParameterSpec kOwnParameters[] = {
    sized_parameter("gene", 1 << 24, "1", "length of the gene; 0: as size says"),
    sized_parameter("segment", 1024, "1", "length of a segment; 0: as size says"),
    sized_parameter("segments", 1 << 28, "1", "number of segments, without those that close gaps; 0: as size says"),
};
constexpr auto kParameters = joined(kCommonParameters, kOwnParameters);

enum Site : unsigned { kDeduplicate, kClaim, kInsertPrefix, kInsertWhole, kMatch };
constexpr std::string_view kSiteNames[] = {"tx_deduplicate", "tx_claim", "tx_insert_prefix", "tx_insert_whole",
                                           "tx_match"};
constexpr MetricSpec kOwnMetrics[] = {
    site_metric(kSiteNames[kDeduplicate]),
    site_metric(kSiteNames[kClaim]),
    site_metric(kSiteNames[kInsertPrefix]),
    site_metric(kSiteNames[kInsertWhole]),
    site_metric(kSiteNames[kMatch]),
    {"unique_segments", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
};
constexpr auto kMetrics = joined(kCommonMetrics, kOwnMetrics);

struct Settings {
  explicit Settings(const ParameterValues& parameters)
      : gene(sized(parameters, "gene", {2048, 256, 16384, 16384})),
        segment(sized(parameters, "segment", {32, 16, 64, 64})),
        segments(sized(parameters, "segments", {131072, 16384, 2097152, 16777216})) {}

  std::uint64_t starts() const noexcept { return gene - segment + 1; }

  std::uint64_t gene, segment, segments;
};

void check(const ParameterValues& parameters) {
  const Settings settings(parameters);
  if (settings.segment < 2 || settings.segment > settings.gene) {
    char value[32], limit[96];
    reject("-p segment", base::format_to(value, "{}", settings.segment),
           base::format_to(limit, "a segment has 2 characters to the gene's length, {}", settings.gene),
           "lower segment or raise gene");
  }
  constexpr double kListBytes = 16, kNodeBytes = 32;
  reject_if_too_large(
      parameters, static_cast<double>(settings.segments) * static_cast<double>(settings.segment + 1 + sizeof(char*)) +
                      static_cast<double>(settings.gene * settings.segment) * (kListBytes + kNodeBytes));
}

using Hash = std::uint64_t;
constexpr Hash extended(Hash hash, char next) noexcept { return static_cast<unsigned char>(next) + 65599 * hash; }

// Segments are strings that end with a zero byte and never change.
struct BySequence {
  LOAM_PURE_IN_TRANSACTIONS static Hash hash(const char* segment) noexcept {
    Hash hash = 0;
    for (; *segment != '\0'; ++segment) hash = extended(hash, *segment);
    return hash;
  }
  LOAM_PURE_IN_TRANSACTIONS static int compare(const char* a, const char* b) noexcept { return std::strcmp(a, b); }
};

LOAM_PURE_IN_TRANSACTIONS bool agree(const char* a, const char* b, std::uint64_t characters) noexcept {
  return std::memcmp(a, b, characters) == 0;
}

// Of a unique segment: the chain of segments that it is part of, as far as it is known.
struct Record {
  std::int32_t is_start;
  const char* segment;
  Hash end_hash;
  Record *start, *next, *end;  // of the chain: its first record as its last one knows it, and the other way round
  std::int64_t overlap, length;
};

// Of the thread to whose part the record belongs, until the end of a length.
struct End {
  bool is_end;
  std::uint64_t to_next;  // at most to the next record that is an end
};

template <class SyncType>
class Genome {
 public:
  static constexpr std::span<const std::string_view> kSites = kSiteNames;

  explicit Genome(const Options& options) : settings_(options.parameters), unique_(settings_.gene) {}
  ~Genome() {
    for (auto& chain : chains()) chain.free_nodes();
  }

  void set_up(SetupAccess<SyncType>& access) {
    draw();
    const std::uint64_t records = settings_.starts();
    records_ = std::make_unique<Record[]>(records);
    for (std::uint64_t i = 0; i < records; ++i)
      records_[i] = {.is_start = 1,
                     .segment = nullptr,
                     .end_hash = 0,
                     .start = &records_[i],
                     .next = nullptr,
                     .end = &records_[i],
                     .overlap = 0,
                     .length = static_cast<std::int64_t>(settings_.segment)};
    ends_.assign(records, End{true, 1});
    tables_ = std::make_unique<Chain[]>(chains().size());

    access.note(records_.get(), records * sizeof(Record));
    access.note(tables_.get(), chains().size_bytes());
    unique_.for_each_fixed_block([&](const void* block, std::size_t bytes) { access.note(block, bytes); });
  }

  void work(Worker<SyncType>& worker) {
    deduplicate(worker);
    worker.barrier();
    build_tables(worker);
    worker.barrier();
    for (std::uint64_t length = settings_.segment - 1; length > 0; --length) {
      match(worker, length);
      worker.barrier();
      if (worker.is_first() && length > 1) prepare(length - 1);
      worker.barrier();
    }
    if (worker.is_first()) write_sequence();
  }

  Outcome verify(SetupAccess<SyncType>&) {
    const auto verdict = unique_.verify();
    if (!verdict.holds()) return {verdict.broken};
    std::size_t blocks = 2 * verdict.elements;  // a pair and a node each
    for (const auto& chain : chains()) {
      const auto of_chain = chain.verify();
      if (!of_chain.holds()) return {of_chain.broken};
      blocks += of_chain.elements;
    }
    if (sequence_.size() < gene_.size()) return {"G1: the sequence is as long as the gene"};
    if (sequence_ != gene_) return {"G2: the sequence is the gene"};
    return {.reachable_blocks = static_cast<std::int64_t>(blocks)};
  }

  void add_to(base::JsonLine& line) const { line.field("unique_segments", unique_segments_); }

 private:
  using Chain = structures::List<Record*>;
  using Unique = structures::ChainedMap<const char*, const char*, BySequence>;

  // The gene, and segments of it that cover it with overlaps.
  void draw() {
    MersenneTwister random(0);
    gene_.resize(settings_.gene);
    for (char& nucleotide : gene_) nucleotide = kNucleotides[random.below(kNucleotides.size())];
    const std::uint64_t starts = settings_.starts(), size = settings_.segment + 1;
    std::vector<bool> is_covered(starts, false);
    std::vector<std::uint64_t> drawn(settings_.segments);
    for (auto& start : drawn) is_covered[start = random.below(starts)] = true;
    const auto cover = [&](std::uint64_t start) {
      if (is_covered[start]) return;
      drawn.push_back(start);
      is_covered[start] = true;
    };
    cover(0);
    for (std::uint64_t start = 1, gap = 0; start < starts; ++start) {
      gap = is_covered[start] ? 0 : gap + 1;
      if (gap + 1 < settings_.segment) continue;
      cover(start);
      gap = 0;
    }
    cover(starts - 1);  // which the published generator leaves to chance
    characters_.resize(drawn.size() * size);
    segments_.resize(drawn.size());
    for (std::uint64_t i = 0; i < drawn.size(); ++i) {
      char* const segment = &characters_[i * size];
      std::memcpy(segment, &gene_[drawn[i]], settings_.segment);
      segment[settings_.segment] = '\0';
      segments_[i] = segment;
    }
  }

  void deduplicate(Worker<SyncType>& worker) {
    const auto part = worker.part_of(segments_.size());
    for (std::uint64_t begin = part.begin; begin < part.end; begin += kChunk) {
      const std::uint64_t end = std::min(begin + kChunk, part.end);
      worker.update(kDeduplicate, [&](auto& access) {
        for (std::uint64_t i = begin; i < end; ++i) unique_.insert(access, segments_[i], segments_[i]);
        return true;
      });
    }
    worker.did(part.end - part.begin);
  }

  std::span<Chain> chains() const noexcept { return {tables_.get(), (settings_.segment + 1) * settings_.gene}; }
  Chain& chain(std::uint64_t length, Hash hash) const noexcept {
    return tables_[length * settings_.gene + hash % settings_.gene];
  }

  void build_tables(Worker<SyncType>& worker) {
    std::uint64_t unique = 0;
    for (std::size_t bucket = 0; bucket < unique_.buckets(); ++bucket) unique += unique_.elements_in(bucket);
    if (worker.is_first()) unique_segments_ = unique;
    const auto buckets = worker.part_of(unique_.buckets());
    std::uint64_t place = worker.part_of(unique).begin;
    for (std::uint64_t bucket = buckets.begin; bucket < buckets.end; ++bucket)
      unique_.for_each_in(bucket, [&](const char* segment, const char*) {
        place = claim(worker, segment, place, unique);
        insert(worker, records_[place++]);
      });
  }

  // Gives the segment a record: the first that is free from `place` on. returns its place
  std::uint64_t claim(Worker<SyncType>& worker, const char* segment, std::uint64_t place, std::uint64_t unique) {
    return worker.update(kClaim, [&](auto& access) {
      std::uint64_t at = place == unique ? 0 : place;
      while (access.read(records_[at].segment) != nullptr) at = at + 1 == unique ? 0 : at + 1;
      access.write(records_[at].segment, segment);
      return at;
    });
  }

  // Into the tables of all lengths.
  void insert(Worker<SyncType>& worker, Record& record) {
    const char* const segment = record.segment;
    record.end_hash = BySequence::hash(segment + 1);
    Hash hash = 0;
    const auto put = [&](unsigned site, std::uint64_t length) {
      Chain& into = chain(length, hash);
      worker.update(site, [&](auto& access) { return into.insert_if_absent(access, &record); });
    };
    for (std::uint64_t length = 1; length < settings_.segment; ++length) {
      hash = extended(hash, segment[length - 1]);
      put(kInsertPrefix, length);
    }
    hash = extended(hash, segment[settings_.segment - 1]);
    put(kInsertWhole, settings_.segment);
  }

  // Joins ends of the worker's records to starts of others that they overlap with by `length`.
  void match(Worker<SyncType>& worker, std::uint64_t length) {
    const auto part = worker.part_of(unique_segments_);
    for (std::uint64_t i = part.begin; i < part.end; i += ends_[i].to_next) {
      if (!ends_[i].is_end) continue;
      Record& record = records_[i];
      const char* const tail = record.segment + settings_.segment - length;
      Record* joined = nullptr;
      chain(length, record.end_hash).visit(plain_, [&](Record* candidate) {
        if (join(worker, record, *candidate, tail, length)) joined = candidate;
        return joined == nullptr;
      });
      if (joined == nullptr) continue;
      ends_[i].is_end = false;
      record.next = joined;
    }
  }

  // Puts the chain that begins with `candidate` behind the one that ends with `record`, if they fit.
  bool join(Worker<SyncType>& worker, Record& record, Record& candidate, const char* tail, std::uint64_t length) {
    return worker.update(kMatch, [&](auto& access) {
      if (access.read(candidate.is_start) == 0 || access.read(record.start) == &candidate ||
          !agree(candidate.segment, tail, length))
        return false;
      access.write(candidate.is_start, 0);
      Record *const end = access.read(candidate.end), *const start = access.read(record.start);
      access.write(end->start, start);
      access.write(start->end, end);
      access.write(record.overlap, static_cast<std::int64_t>(length));
      access.write(start->length,
                   access.read(start->length) + access.read(candidate.length) - static_cast<std::int64_t>(length));
      return true;
    });
  }

  // For the next length: hashes of those that are ends still, and links over those that are not.
  void prepare(std::uint64_t length) {
    for (std::uint64_t i = 0; i < unique_segments_;) {
      if (ends_[i].is_end) records_[i].end_hash = BySequence::hash(records_[i].segment + settings_.segment - length);
      std::uint64_t next = i + ends_[i].to_next;
      while (next < unique_segments_ && !ends_[next].is_end) next += ends_[next].to_next;
      ends_[i].to_next = next - i;
      i = next;
    }
  }

  void write_sequence() {
    std::int64_t length = 0;
    for (std::uint64_t i = 0; i < unique_segments_; ++i)
      if (records_[i].is_start != 0) length += records_[i].length;
    sequence_.reserve(static_cast<std::size_t>(length));
    for (std::uint64_t i = 0; i < unique_segments_; ++i) {
      if (records_[i].is_start == 0) continue;
      std::uint64_t known = 0;
      for (const Record* record = &records_[i]; record != nullptr; record = record->next) {
        sequence_.append(record->segment + known, settings_.segment - known);
        known = static_cast<std::uint64_t>(record->overlap);
      }
    }
  }

  const Settings settings_;
  std::string gene_, sequence_;
  std::vector<char> characters_;
  std::vector<const char*> segments_;
  Unique unique_;
  std::uint64_t unique_segments_ = 0;
  std::unique_ptr<Record[]> records_;
  std::vector<End> ends_;
  std::unique_ptr<Chain[]> tables_;  // one after the other by length; each of as many chains as the gene is long
  const structures::PlainAccess plain_{};
};

const base::Registration<Workload> registration{
    Workload{.name = "genome",
             .summary = "puts a gene together from its segments; many phases, some long read sets; counts segments",
             .kinds = kSharedData,
             .parameters = kParameters,
             .metrics = kMetrics,
             .check = check_application<check>,
             .run = run_application<Genome>}};

}  // namespace
}  // namespace loam::workloads::applications
