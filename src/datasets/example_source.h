// The interface of sources of examples, whatever the examples are: files of one kind with random access,
// which a task opens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "datasets/packing.h"
#include "datasets/tensor_spec.h"
#include "datasets/token_masking.h"

namespace plimsoll::datasets {

/// A target that counts nowhere; the value of ops::kIgnoreTarget.
inline constexpr int32_t kNoTarget = -100;

/// What an example, or several, hold.
struct ExampleCounts {
  int64_t units = 0;    ///< of what the task counts examples in, without padding: tokens, images
  int64_t targets = 0;  ///< of what the loss is a mean over

  void add(const ExampleCounts& more) {
    units += more.units;
    targets += more.targets;
  }
};

/// Examples of one kind with random access. Const calls may come from any thread, each with its own scratch.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;
  [[nodiscard]] virtual int64_t num_examples() const = 0;
  /// What the source's files hold, in the task's unit.
  [[nodiscard]] virtual int64_t num_units() const = 0;
  [[nodiscard]] virtual int64_t scratch_bytes() const { return 0; }
  /// Of an example along its tensors' length axis, without padding; where no tensor has one, 1. Errors:
  /// kBadData, kIo.
  virtual Result<int64_t> length(int64_t /*index*/, std::span<std::byte> /*scratch*/) const { return 1; }
  /// Writes an example's part of each tensor of a batch, all of it, in the order of the task's inputs.
  /// Allocates nothing. Errors: kBadData, kIo.
  virtual Result<ExampleCounts> read(int64_t index, ExampleRow row, std::span<std::byte> scratch) const = 0;
  /// The same where what is read differs from epoch to epoch: images that are augmented. Errors: as read.
  virtual Result<ExampleCounts> read_in_epoch(int64_t index, int64_t /*epoch*/, ExampleRow row,
                                              std::span<std::byte> scratch) const {
    return read(index, row, scratch);
  }
  /// The name of an example in messages and reports: an image's file; empty: it has none. Errors: as read.
  virtual Result<std::string> name(int64_t /*index*/, std::span<std::byte> /*scratch*/) const {
    return std::string();
  }
  /// Keeps files in memory that fit `room` bytes, which become less. Errors: as read.
  virtual Status keep_within(int64_t& /*room*/) { return Ok{}; }
  /// A number for what would be read: another one, other data. Errors: as read.
  virtual Result<uint64_t> fingerprint(std::span<std::byte> scratch) const = 0;
  /// What packing did; null where nothing was packed.
  [[nodiscard]] virtual const PackReport* pack_report() const { return nullptr; }
  /// Where the index of that lies; empty where nothing was packed.
  [[nodiscard]] virtual std::string index_path() const { return {}; }
};

/// A source of a run: files of one kind.
struct DataFiles {
  std::vector<std::string> paths = {};
  double weight = 1;  ///< its share where there are several
};

/// How files are opened as examples.
struct SourceOptions {
  PackOptions pack = {};               ///< of shards; sequence_length and keep_tail are streams' too
  int64_t vocab_size = 0;              ///< ids are checked against it; 0: a task's own, or not at all
  uint64_t vocabulary_hash = 0;        ///< the tokenizer's; 0: not checked
  std::string cache_folder = {};       ///< of pack indexes
  std::string setting = "data.train";  ///< named in messages
  int64_t source = 0;                  ///< of several, which one: what is drawn differs
  uint64_t seed = 0;                   ///< of the order, and of what is drawn for examples
  bool augments = false;               ///< examples are for training: images may be augmented
  bool skips_damaged = false;          ///< an example that turns out to be damaged counts nowhere
  /// Where tokens are masked: which ones may be, of the run's tokenizer.
  std::shared_ptr<const TokenKinds> token_kinds = {};
};

/// Opens files of one kind as examples. Errors: as TrainingData::open.
using OpenSource = std::function<Result<std::unique_ptr<ExampleSource>>(const DataFiles& files,
                                                                        const SourceOptions& options)>;

}  // namespace plimsoll::datasets
