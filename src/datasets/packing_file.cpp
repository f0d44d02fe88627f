#include "datasets/packing_file.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "io/checksum.h"

namespace plimsoll::datasets::packing {
namespace {

using namespace shard;

constexpr uint32_t kVersion = 1;
constexpr int64_t kSegmentBytes = 16, kSegmentsPerBlock = 256;
constexpr int64_t kSequenceBytes = 8, kSequencesPerBlock = 512;
constexpr size_t kChecksumAt = kPackHeaderBytes - 8;
constexpr int64_t kMost = int64_t{1} << 48;  // of anything that is counted

/// The report's figures in the order of the file.
template <typename Report>
auto figures(Report& r) {
  return std::array{&r.num_sequences, &r.sequence_length, &r.num_segments, &r.num_tokens, &r.num_targets,
                    &r.documents, &r.tokens, &r.kept_documents, &r.cut_documents, &r.too_long_documents,
                    &r.too_long_tokens, &r.no_target_documents, &r.no_target_tokens, &r.no_target_pieces,
                    &r.no_target_piece_tokens, &r.other_side_documents, &r.other_side_tokens, &r.tail_tokens,
                    // Version 1 without these has zeros here.
                    &r.truncated_documents, &r.truncated_tokens, &r.beyond_documents, &r.beyond_tokens};
}

Error bad_packing(std::string what) {
  return {ErrorCode::kBadData, std::move(what), {}, "remove the file: it is made again"};
}

int64_t file_size(const PackReport& report) {
  const TableLayout last = sequences_layout(report);
  return last.offset + last.size_bytes();
}

}  // namespace

TableLayout segments_layout(const PackReport& report) {
  return {.offset = kPackHeaderBytes,
          .num_entries = report.num_segments,
          .entry_bytes = kSegmentBytes,
          .entries_per_block = kSegmentsPerBlock};
}

TableLayout sequences_layout(const PackReport& report) {
  const TableLayout before = segments_layout(report);
  return {.offset = before.offset + before.size_bytes(),
          .num_entries = report.num_sequences,
          .entry_bytes = kSequenceBytes,
          .entries_per_block = kSequencesPerBlock};
}

Result<Header> parse_header(std::span<const std::byte, kPackHeaderBytes> bytes, int64_t file_bytes) {
  const std::byte* h = bytes.data();
  if (std::memcmp(h, kPackMagic.data(), kPackMagic.size()) != 0 || load_u32(h + 8) != kVersion)
    return bad_packing("the file is no pack index of this version");
  if (io::checksum(bytes.first(kChecksumAt)) != load_u64(h + kChecksumAt))
    return bad_packing("the pack index's header does not match its checksum");
  Header header;
  header.key = load_u64(h + 16);
  const std::byte* at = h + 24;
  for (int64_t* figure : figures(header.report)) {
    const uint64_t value = load_u64(at);
    if (value > static_cast<uint64_t>(kMost)) return bad_packing("the pack index's counts are impossible");
    *figure = static_cast<int64_t>(value);
    at += 8;
  }
  if (file_bytes != file_size(header.report))
    return bad_packing(fmt::format("the pack index has {} bytes where its header says {}", file_bytes,
                                   file_size(header.report)));
  return header;
}

Result<IndexWriter> IndexWriter::create(const std::string& path) {
  PLIMSOLL_ASSIGN(SequentialFile file, SequentialFile::create(path, kPackHeaderBytes));
  PLIMSOLL_ASSIGN(SpillFile spill, SpillFile::create(path));
  return IndexWriter(std::move(file), std::move(spill));
}

IndexWriter::IndexWriter(SequentialFile file, SpillFile spill)
    : file_(std::move(file)),
      spill_(std::move(spill)),
      segments_(kSegmentBytes, kSegmentsPerBlock),
      sequences_(kSequenceBytes, kSequencesPerBlock) {}

Status IndexWriter::add(const PackSegment& segment) {
  std::byte* entry = segments_.next();
  store_u64(entry, static_cast<uint64_t>(segment.begin));
  store_u32(entry + 8, static_cast<uint32_t>(segment.length));
  store_u32(entry + 12, static_cast<uint32_t>(segment.shard));
  return segments_.full() ? file_.append(segments_.take()) : Status(Ok{});
}

Status IndexWriter::end_sequence() {
  store_u64(sequences_.next(), static_cast<uint64_t>(segments_.num_entries()));
  return sequences_.full() ? spill_.append(sequences_.take()) : Status(Ok{});
}

Status IndexWriter::finish(const Header& header) {
  PLIMSOLL_TRY(file_.append(segments_.take()));
  PLIMSOLL_TRY(spill_.append(sequences_.take()));
  PLIMSOLL_TRY(spill_.replay([&](std::span<const std::byte> bytes) { return file_.append(bytes); }));
  std::array<std::byte, kPackHeaderBytes> out = {};
  std::memcpy(out.data(), kPackMagic.data(), kPackMagic.size());
  store_u32(out.data() + 8, kVersion);
  store_u64(out.data() + 16, header.key);
  std::byte* at = out.data() + 24;
  for (const int64_t* figure : figures(header.report)) {
    store_u64(at, static_cast<uint64_t>(*figure));
    at += 8;
  }
  store_u64(out.data() + kChecksumAt, io::checksum(std::span(out).first(kChecksumAt)));
  return file_.commit(out);
}

}  // namespace plimsoll::datasets::packing
