// Each slice goes through small buffers, so that a file of any size needs the same memory; schemes with a
// scale for the whole tensor read it once more beforehand.
#include "cli/inspect/inspect_rounder.h"

#include <algorithm>
#include <tuple>

#include "base/process.h"
#include "io/parallel.h"
#include "io/tensor_convert.h"
#include "numerics/convert.h"

namespace plimsoll::cli {
namespace {

using numerics::Format;
using numerics::Scheme;

constexpr int kMaxThreads = 16;

int64_t element_bytes_of(const std::string& dtype) { return io::safetensors_dtype_bytes(dtype); }

/// Rows of `row_bytes`, of which `part_bytes` from `offset` on are one after the other in memory:
/// io(position in the tensor, position in memory, bytes) for each run that is whole.
template <class Io>
Status for_row_parts(int64_t first_row, int64_t rows, int64_t row_bytes, int64_t offset, int64_t part_bytes,
                     const Io& io) {
  if (part_bytes == row_bytes) return io(first_row * row_bytes, 0, rows * row_bytes);
  for (int64_t r = 0; r < rows; ++r)
    PLIMSOLL_TRY(io((first_row + r) * row_bytes + offset, r * part_bytes, part_bytes));
  return Ok{};
}

void widen(const std::string& dtype, std::span<const std::byte> stored, std::span<float> x) {
  if (const auto format = io::float_format(dtype))
    convert_to_f32(*format, stored.data(), x.data(), static_cast<int64_t>(x.size()));
  else
    numerics::decode(dtype == "F8_E4M3" ? Format::kE4m3 : Format::kE5m2, stored, x);
}

/// The slice's numbers, as f32, in `before`.
Status read_slice(const io::SafetensorsFile& file, const RoundedTensor& subject, const Slice& slice,
                  std::vector<std::byte>& stored, std::vector<float>& before) {
  const io::SafetensorsTensor& tensor = *subject.tensor;
  const int64_t size = element_bytes_of(tensor.dtype);
  stored.resize(static_cast<size_t>(slice.rows * slice.cols * size));
  before.resize(static_cast<size_t>(slice.rows * slice.cols));
  PLIMSOLL_TRY(for_row_parts(slice.row, slice.rows, subject.view.cols * size, slice.col * size,
                             slice.cols * size, [&](int64_t at, int64_t to, int64_t bytes) {
                               return file.read(tensor, at,
                                                std::span(stored).subspan(static_cast<size_t>(to),
                                                                          static_cast<size_t>(bytes)));
                             }));
  widen(tensor.dtype, stored, before);
  return Ok{};
}

/// The dtype that codes are stored as.
const char* stored_dtype(Scheme scheme) {
  switch (numerics::info(scheme).codes) {
    case Format::kBf16:
      return "BF16";
    case Format::kFp16:
      return "F16";
    case Format::kTf32:
      return "F32";
    default:
      return "U8";
  }
}

/// The last axis with as many elements as a row has bytes of codes, where codes are bytes.
std::vector<int64_t> code_shape(Scheme scheme, std::vector<int64_t> shape) {
  const Format codes = numerics::info(scheme).codes;
  if (!shape.empty() && numerics::info(codes).stored_bits == 4)
    shape.back() = numerics::code_row_bytes(scheme, shape.back());
  return shape;
}

std::vector<int64_t> scale_shape(Scheme scheme, std::vector<int64_t> shape) {
  if (numerics::info(scheme).block_rows == 0 || shape.empty()) return {1};
  shape.back() = numerics::scale_cols(scheme, shape.back());
  if (shape.size() >= 2) shape[shape.size() - 2] = numerics::scale_rows(scheme, shape[shape.size() - 2]);
  return shape;
}

bool has_block_scales(Scheme scheme) { return numerics::info(scheme).block_rows > 0; }

}  // namespace

struct TensorRounder::Buffers {
  std::vector<std::byte> stored, codes, scales;
  std::vector<float> before, after;
};

void TensorRounder::take(const io::SafetensorsTensor& tensor) {
  RoundedTensor subject;
  subject.tensor = &tensor;
  subject.view = matrix_view(scheme_, tensor.shape);
  subject.slices = slices_of(scheme_, subject.view);
  for (size_t i = 0; i < subject.slices.size(); ++i) pieces_.push_back({subjects_.size(), i});
  subjects_.push_back(std::move(subject));
}

/// Lays the output out: wide dtypes first, so that every tensor lies on a multiple of its element's size.
Status TensorRounder::create(const std::string& path) {
  struct Part {
    io::SafetensorsEntry entry;
    size_t* index;
  };
  std::vector<Part> parts;
  const bool has_blocks = has_block_scales(scheme_), has_one = numerics::info(scheme_).has_tensor_scale;
  for (RoundedTensor& s : subjects_) {
    const auto& [name, shape] = std::tie(s.tensor->name, s.tensor->shape);
    parts.push_back({{name + ".values", stored_dtype(scheme_), code_shape(scheme_, shape)}, &s.values});
    if (has_blocks || has_one)
      parts.push_back({{name + ".scales", numerics::scale_bytes(scheme_) == 4 ? "F32" : "U8",
                        scale_shape(scheme_, shape)},
                       &s.scales});
    if (has_blocks && has_one) parts.push_back({{name + ".global_scale", "F32", {1}}, &s.global_scale});
    parts.push_back({{name + ".dequantized", "F32", shape}, &s.dequantized});
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return element_bytes_of(a.entry.dtype) > element_bytes_of(b.entry.dtype);
  });
  std::vector<io::SafetensorsEntry> entries;
  for (Part& part : parts) {
    *part.index = entries.size();
    entries.push_back(std::move(part.entry));
  }
  PLIMSOLL_ASSIGN(writer_,
                  io::SafetensorsWriter::create(
                      path, std::move(entries),
                      {{"format", "pt"}, {"quantization", std::string(numerics::info(scheme_).name)}}));
  return Ok{};
}

template <class Work>
Status TensorRounder::for_all_pieces(const Work& work) {
  const int threads = std::min(num_available_cpus(), kMaxThreads);
  std::vector<Buffers> buffers(static_cast<size_t>(std::max(1, threads)));
  return io::in_parallel(pieces_.size(), std::max(1, threads),
                         [&](size_t i, size_t t) -> Status { return work(i, buffers[t]); });
}

/// The largest magnitudes, and the tensors' scales.
Status TensorRounder::measure() {
  if (numerics::info(scheme_).has_tensor_scale) {
    std::vector<float> largest(pieces_.size());
    const auto measure_piece = [&](size_t i, Buffers& buffers) -> Status {
      const RoundedTensor& subject = subjects_[pieces_[i].subject];
      PLIMSOLL_TRY(
          read_slice(file_, subject, subject.slices[pieces_[i].slice], buffers.stored, buffers.before));
      largest[i] = numerics::largest_magnitude(buffers.before);
      return Ok{};
    };
    PLIMSOLL_TRY(for_all_pieces(measure_piece));
    for (size_t i = 0; i < pieces_.size(); ++i) {
      float& amax = subjects_[pieces_[i].subject].scale.amax;
      amax = std::max(amax, largest[i]);
    }
  }
  for (RoundedTensor& subject : subjects_)
    subject.scale = numerics::tensor_scale(scheme_, subject.scale.amax);
  return Ok{};
}

/// Rounds a slice's numbers to codes and back, all in buffers; several matrices one after the other.
Result<RoundingError> TensorRounder::round(const RoundedTensor& subject, const Slice& slice, Buffers& b) {
  const int64_t rows = std::min(slice.rows, subject.view.matrix_rows);
  const auto count = static_cast<size_t>(slice.rows / rows);
  const auto code_bytes = static_cast<size_t>(rows * numerics::code_row_bytes(scheme_, slice.cols));
  const auto scale_bytes =
      static_cast<size_t>(numerics::scale_rows(scheme_, rows) * numerics::scale_cols(scheme_, slice.cols) *
                          numerics::scale_bytes(scheme_));
  b.codes.resize(count * code_bytes);
  b.scales.resize(count * scale_bytes);
  b.after.resize(b.before.size());
  RoundingError error;
  for (size_t m = 0; m < count; ++m) {
    const size_t size = b.before.size() / count;
    const auto codes = std::span(b.codes).subspan(m * code_bytes, code_bytes);
    const auto scales = std::span(b.scales).subspan(m * scale_bytes, scale_bytes);
    error.clipped += numerics::quantize(scheme_, subject.scale, std::span(b.before).subspan(m * size, size),
                                        rows, slice.cols, codes, scales);
    numerics::dequantize(scheme_, subject.scale, codes, scales, rows, slice.cols,
                         std::span(b.after).subspan(m * size, size));
  }
  error.add(b.before, b.after);
  return error;
}

Status TensorRounder::write_rows(size_t index, int64_t first_row, int64_t rows, int64_t row_bytes,
                                 int64_t offset, std::span<const std::byte> bytes) {
  return for_row_parts(first_row, rows, row_bytes, offset, static_cast<int64_t>(bytes.size()) / rows,
                       [&](int64_t at, int64_t from, int64_t n) {
                         return writer_->write(
                             index, bytes.subspan(static_cast<size_t>(from), static_cast<size_t>(n)), at);
                       });
}

Status TensorRounder::write_slice(const RoundedTensor& subject, const Slice& slice, const Buffers& buffers) {
  const int64_t cols = subject.view.cols;
  const std::lock_guard lock(writing_);
  PLIMSOLL_TRY(write_rows(subject.values, slice.row, slice.rows, numerics::code_row_bytes(scheme_, cols),
                          numerics::code_row_bytes(scheme_, slice.col), buffers.codes));
  PLIMSOLL_TRY(write_rows(subject.dequantized, slice.row, slice.rows, cols * 4, slice.col * 4,
                          std::as_bytes(std::span(buffers.after))));
  if (!has_block_scales(scheme_)) return Ok{};
  const int64_t size = numerics::scale_bytes(scheme_);
  const int64_t width = numerics::scale_cols(scheme_, slice.cols) * size;
  return write_rows(subject.scales, scale_row_of(scheme_, subject.view, slice.row),
                    static_cast<int64_t>(buffers.scales.size()) / width,
                    numerics::scale_cols(scheme_, cols) * size,
                    numerics::scale_cols(scheme_, slice.col) * size, buffers.scales);
}

/// One number a tensor: fp8's decoding scale, NVFP4's S.
Status TensorRounder::write_scales_of_tensors() {
  if (!numerics::info(scheme_).has_tensor_scale) return Ok{};
  for (const RoundedTensor& s : subjects_) {
    const bool is_global = s.global_scale != RoundedTensor::kNotWritten;
    const float number = is_global ? s.scale.scale : s.scale.decode;
    PLIMSOLL_TRY(writer_->write(is_global ? s.global_scale : s.scales, std::as_bytes(std::span(&number, 1))));
  }
  return Ok{};
}

Status TensorRounder::round_all() {
  std::vector<RoundingError> errors(pieces_.size());
  const auto round_piece = [&](size_t i, Buffers& buffers) -> Status {
    const RoundedTensor& subject = subjects_[pieces_[i].subject];
    const Slice& slice = subject.slices[pieces_[i].slice];
    PLIMSOLL_TRY(read_slice(file_, subject, slice, buffers.stored, buffers.before));
    PLIMSOLL_ASSIGN(errors[i], round(subject, slice, buffers));
    return writer_ ? write_slice(subject, slice, buffers) : Status(Ok{});
  };
  PLIMSOLL_TRY(for_all_pieces(round_piece));
  // In the order of slices, so that sums do not depend on threads.
  for (size_t i = 0; i < pieces_.size(); ++i) subjects_[pieces_[i].subject].error.add(errors[i]);
  return Ok{};
}

Status TensorRounder::run() {
  PLIMSOLL_TRY(measure());
  PLIMSOLL_TRY(round_all());
  if (!writer_) return Ok{};
  PLIMSOLL_TRY(write_scales_of_tensors());
  return writer_->finish();
}

}  // namespace plimsoll::cli
