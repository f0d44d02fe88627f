// Tensors of a file rounded to a scheme, slice by slice: the errors, and an output file where asked for.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/inspect/inspect_rounding.h"
#include "cli/inspect/inspect_slices.h"
#include "io/safetensors_reader.h"
#include "io/safetensors_writer.h"
#include "numerics/blocks.h"

namespace plimsoll::cli {

/// A tensor, how it is cut, what is known of it, and where in the output its parts stand.
struct RoundedTensor {
  static constexpr size_t kNotWritten = static_cast<size_t>(-1);
  const io::SafetensorsTensor* tensor = nullptr;
  MatrixView view;
  std::vector<Slice> slices;
  numerics::TensorScale scale;
  RoundingError error;
  size_t values = kNotWritten, scales = kNotWritten, global_scale = kNotWritten, dequantized = kNotWritten;
};

class TensorRounder {
 public:
  TensorRounder(const io::SafetensorsFile& file, numerics::Scheme scheme) : file_(file), scheme_(scheme) {}

  /// One more tensor, of a dtype with statistics; before `create` and `run`.
  void take(const io::SafetensorsTensor& tensor);
  /// Begins the output, all or nothing. Errors: kIo.
  Status create(const std::string& path);
  /// Rounds all tensors, writes the output. Memory: 5 MiB a thread. Errors: kIo, kBadData of the file.
  Status run();
  [[nodiscard]] const std::vector<RoundedTensor>& subjects() const { return subjects_; }

 private:
  struct Piece {  ///< a slice of one of the subjects
    size_t subject, slice;
  };
  struct Buffers;
  Status measure();
  Status round_all();
  Result<RoundingError> round(const RoundedTensor& subject, const Slice& slice, Buffers& buffers);
  Status write_slice(const RoundedTensor& subject, const Slice& slice, const Buffers& buffers);
  Status write_scales_of_tensors();
  Status write_rows(size_t index, int64_t first_row, int64_t rows, int64_t row_bytes, int64_t offset,
                    std::span<const std::byte> bytes);
  template <class Work>
  Status for_all_pieces(const Work& work);

  const io::SafetensorsFile& file_;
  numerics::Scheme scheme_;
  std::vector<RoundedTensor> subjects_;
  std::vector<Piece> pieces_;
  std::optional<io::SafetensorsWriter> writer_;
  std::mutex writing_;
};

}  // namespace plimsoll::cli
