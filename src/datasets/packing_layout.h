// Pieces of documents laid into sequences, each as the mode of packing wants it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "datasets/packing.h"
#include "datasets/packing_file.h"
#include "datasets/packing_window.h"

namespace plimsoll::datasets::packing {

struct Piece {
  PackSegment segment;
  int32_t targets = 0;
};

/// Where sequences go: into the index, or only counted by their lengths.
class Sequences {
 public:
  explicit Sequences(IndexWriter& writer) : writer_(&writer) {}
  explicit Sequences(LengthCounts& lengths) : lengths_(&lengths) {}

  Status add(const PackSegment& segment) {
    tokens_ += segment.length;
    return writer_ != nullptr ? writer_->add(segment) : Status(Ok{});
  }
  Status end() {
    if (lengths_ != nullptr) lengths_->add(tokens_);
    tokens_ = 0;
    return writer_ != nullptr ? writer_->end_sequence() : Status(Ok{});
  }

 private:
  IndexWriter* writer_ = nullptr;
  LengthCounts* lengths_ = nullptr;
  int64_t tokens_ = 0;  ///< of the sequence at hand
};

/// Takes pieces and lays them into sequences, each as the mode wants it.
class Layout {
 public:
  Layout(const PackOptions& options, Sequences sequences, PackReport& report)
      : options_(options), sequences_(sequences), report_(report), best_fit_(capacity()) {}

  Status add(const Piece& piece) {
    pending_.push_back(piece);
    pending_tokens_ += piece.segment.length;
    const bool full = options_.mode == PackMode::kBestFit
                          ? static_cast<int64_t>(pending_.size()) >= options_.window
                          : options_.mode == PackMode::kPad || pending_tokens_ == options_.sequence_length;
    return full ? flush() : Status(Ok{});
  }
  /// How much of a stream's sequence is free.
  [[nodiscard]] int64_t room() const { return options_.sequence_length - pending_tokens_; }
  Status finish() {
    if (options_.mode != PackMode::kStream || options_.keep_tail) return flush();
    report_.tail_tokens = pending_tokens_;
    return Ok{};
  }

 private:
  [[nodiscard]] int64_t capacity() const {
    return options_.mode == PackMode::kBestFit ? options_.sequence_length : 0;
  }
  Status flush();
  Status write(const Piece& piece);
  const PackOptions& options_;
  Sequences sequences_;
  PackReport& report_;
  BestFit best_fit_;
  std::vector<Piece> pending_;
  int64_t pending_tokens_ = 0;
  std::vector<int32_t> lengths_, bins_, starts_, by_bin_;
};

}  // namespace plimsoll::datasets::packing
