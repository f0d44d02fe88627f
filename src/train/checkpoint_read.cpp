// Tensors of a checkpoint, read in parallel to where they belong, past the page cache: they are read once. A
// tensor is read, summed and copied by one thread, piece by piece; threads take the next tensor from the
// list, the largest first.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "base/check.h"
#include "base/units.h"
#include "io/checksum.h"
#include "io/file.h"
#include "io/parallel.h"
#include "io/tensor_convert.h"
#include "train/checkpoint.h"

namespace plimsoll::train {
namespace {

/// What reading past the page cache asks of addresses and offsets.
constexpr int64_t kBlock = 4096;
/// Buffers of all threads together: as much as saving will take later (io/stream_writer.h).
constexpr int64_t kBufferBytes = 2 << 20;
constexpr int64_t kMostPieceBytes = 1 << 20;
constexpr int kMostThreads = 16;

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<std::byte, Free>;

class TensorReader {
 public:
  TensorReader(const CheckpointFile& file, const ReadFile& content, const TensorDestination& destination)
      : file_(file), content_(content), destination_(destination) {
    for (size_t i = 0; i < file.tensors.size(); ++i) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return file.tensors[a].bytes > file.tensors[b].bytes; });
  }

  Status operator()(int wanted_threads) {
    const int num_threads = std::clamp(wanted_threads, 1, kMostThreads);
    piece_bytes_ = std::min(kMostPieceBytes, kBufferBytes / num_threads / kBlock * kBlock);
    content_.bypass_cache();
    std::vector<Buffer> buffers;
    buffers.reserve(static_cast<size_t>(num_threads));
    for (int t = 0; t < num_threads; ++t) buffers.push_back(make_buffer());
    PLIMSOLL_TRY(sum(0, file_.header_bytes, {{}, {}}, file_.checksum, "its header", buffers.front().get()));
    return in_parallel(order_.size(), num_threads, [&](size_t i, size_t thread) {
      const CheckpointTensor& t = file_.tensors[order_[i]];
      const std::span<std::byte> to = destination_(t);
      const bool is_widened = !to.empty() && static_cast<int64_t>(to.size()) == 2 * t.bytes;
      const auto format = is_widened ? float_format(t.dtype) : std::nullopt;
      PLIMSOLL_CHECK(!is_widened || (format && element_bytes(*format) == 2), t.name);
      if (is_widened && t.offset % 2 != 0) return odd(t.name);
      return sum(t.offset, t.bytes, {to, format}, t.checksum, t.name, buffers[thread].get());
    });
  }

 private:
  [[nodiscard]] Buffer make_buffer() const {
    Buffer buffer(static_cast<std::byte*>(
        std::aligned_alloc(static_cast<size_t>(kBlock), static_cast<size_t>(piece_bytes_))));
    PLIMSOLL_CHECK(buffer != nullptr, "no memory to read a checkpoint through");
    return buffer;
  }

  struct Place {
    std::span<std::byte> bytes;                    ///< empty: nowhere
    std::optional<FloatFormat> widened_from = {};  ///< as f32, from this
  };

  [[nodiscard]] Status odd(const std::string& name) const {
    return Error{ErrorCode::kBadData, name + " does not begin on two bytes", content_.path(),
                 "resume from an older checkpoint, or --resume never"};
  }

  static void place(const Place& to, int64_t at, std::span<const std::byte> piece) {
    if (to.bytes.empty()) return;
    if (to.widened_from)
      convert_to_f32(*to.widened_from, piece.data(), reinterpret_cast<float*>(to.bytes.data()) + at / 2,
                     static_cast<int64_t>(piece.size()) / 2);
    else
      std::memcpy(to.bytes.data() + at, piece.data(), piece.size());
  }

  /// Bytes [offset, offset + bytes) of the file, block by block, to their place.
  Status sum(int64_t offset, int64_t bytes, const Place& to, uint64_t expected, const std::string& name,
             std::byte* buffer) {
    Checksum sum;
    const int64_t end = offset + bytes;
    for (int64_t at = offset; at < end;) {
      const int64_t block = at / kBlock * kBlock;
      const int64_t size = std::min(piece_bytes_, round_up(end - block, kBlock));
      const int64_t count = std::min(block + size, end) - at;
      PLIMSOLL_TRY(content_.read_blocks(block, {buffer, static_cast<size_t>(size)}, at + count - block));
      const std::span<const std::byte> piece(buffer + (at - block), static_cast<size_t>(count));
      sum.add(piece);
      place(to, at - offset, piece);
      at += count;
    }
    if (sum.value() == expected) return Ok{};
    return Error{ErrorCode::kBadData, "the checksum of " + name + " is wrong", content_.path(),
                 "resume from an older checkpoint, or --resume never"};
  }

  const CheckpointFile& file_;
  const ReadFile& content_;
  const TensorDestination& destination_;
  int64_t piece_bytes_ = 0;
  std::vector<size_t> order_;
};

}  // namespace

Status read_checkpoint_tensors(const Checkpoint& checkpoint, const CheckpointFile& file,
                               const TensorDestination& destination, int num_threads) {
  PLIMSOLL_ASSIGN(const ReadFile content, ReadFile::open(checkpoint.path + "/" + file.name));
  PLIMSOLL_TRY(check_size(content, file));
  return TensorReader(file, content, destination)(num_threads);
}

Status verify_checkpoint(const Checkpoint& checkpoint, int num_threads) {
  const TensorDestination nowhere = [](const CheckpointTensor&) { return std::span<std::byte>(); };
  for (const CheckpointFile& file : checkpoint.manifest.files)
    if (!file.tensors.empty()) PLIMSOLL_TRY(read_checkpoint_tensors(checkpoint, file, nowhere, num_threads));
  return Ok{};
}

}  // namespace plimsoll::train
