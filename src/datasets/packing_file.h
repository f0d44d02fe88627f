// The pack index as a file: written sequence by sequence, its header read back.
//
//   header | segments | ends of sequences
//
// Segments lie in blocks of 256: begin u64, length u32, shard u32; the ends in blocks of 512.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "datasets/packing.h"
#include "datasets/shard_table.h"

namespace plimsoll::datasets::packing {

inline constexpr int64_t kPackHeaderBytes = 256;

struct Header {
  uint64_t key = 0;
  PackReport report;
};
/// The tables by the header's counts.
shard::TableLayout segments_layout(const PackReport& report);
shard::TableLayout sequences_layout(const PackReport& report);
/// Errors: kBadData for anything but an index of this version that is as long as its header says. `where` is
/// left to the caller.
Result<Header> parse_header(std::span<const std::byte, kPackHeaderBytes> bytes, int64_t file_bytes);

/// Memory: 1 MiB and two blocks.
class IndexWriter {
 public:
  /// Errors: kIo.
  static Result<IndexWriter> create(const std::string& path);
  /// A sequence of at least one segment. Errors: kIo.
  Status add(const PackSegment& segment);
  Status end_sequence();
  [[nodiscard]] int64_t num_segments() const { return segments_.num_entries(); }
  [[nodiscard]] int64_t num_sequences() const { return sequences_.num_entries(); }
  /// Errors: kIo, then there is no file.
  Status finish(const Header& header);

 private:
  IndexWriter(shard::SequentialFile file, shard::SpillFile spill);
  shard::SequentialFile file_;
  shard::SpillFile spill_;
  shard::TableWriter segments_, sequences_;
};

}  // namespace plimsoll::datasets::packing
