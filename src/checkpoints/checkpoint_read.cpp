// Tensors of a checkpoint, read in parallel to where they belong, past the page cache: they are read once. A
// tensor is read, summed and copied by one thread, piece by piece; threads take the next tensor from the
// list, the largest first.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <new>

#include "base/check.h"
#include "base/units.h"
#include "checkpoints/checkpoint.h"
#include "io/checksum.h"
#include "io/file.h"
#include "io/parallel.h"

namespace plimsoll::checkpoints {
namespace {

/// What reading past the page cache asks of addresses and offsets.
constexpr int64_t kBlock = 4096;
/// Buffers of all threads together: as much as saving will take later (io/stream_writer.h).
constexpr int64_t kBufferBytes = 2 << 20;
constexpr int64_t kMostPieceBytes = 1 << 20;
constexpr int kMostThreads = 16;

struct Free {
  void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{kBlock}); }
};
using Buffer = std::unique_ptr<std::byte, Free>;

class TensorReader {
 public:
  TensorReader(const CheckpointFile& file, const io::ReadFile& content, const TakeTensorPiece& take)
      : file_(file), content_(content), take_(take) {
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
    const auto nowhere = [](int64_t, std::span<const std::byte>) -> Status { return Ok{}; };
    PLIMSOLL_TRY(sum(0, file_.header_bytes, nowhere, file_.checksum, "its header", buffers.front().get()));
    return io::in_parallel(order_.size(), num_threads, [&](size_t i, size_t thread) {
      const CheckpointTensor& t = file_.tensors[order_[i]];
      const auto take = [&](int64_t at, std::span<const std::byte> piece) { return take_(t, at, piece); };
      return sum(t.offset, t.bytes, take, t.checksum, t.name, buffers[thread].get());
    });
  }

 private:
  [[nodiscard]] Buffer make_buffer() const {
    return Buffer(static_cast<std::byte*>(
        ::operator new (static_cast<size_t>(piece_bytes_), std::align_val_t{kBlock})));
  }

  /// Bytes [offset, offset + bytes) of the file, block by block, to whom takes them.
  template <typename Take>
  Status sum(int64_t offset, int64_t bytes, const Take& take, uint64_t expected, const std::string& name,
             std::byte* buffer) {
    io::Checksum sum;
    const int64_t end = offset + bytes;
    for (int64_t at = offset; at < end;) {
      const int64_t block = at / kBlock * kBlock;
      const int64_t size = std::min(piece_bytes_, round_up(end - block, kBlock));
      const int64_t count = std::min(block + size, end) - at;
      PLIMSOLL_TRY(content_.read_blocks(block, {buffer, static_cast<size_t>(size)}, at + count - block));
      const std::span<const std::byte> piece(buffer + (at - block), static_cast<size_t>(count));
      sum.add(piece);
      PLIMSOLL_TRY(take(at - offset, piece));
      at += count;
    }
    if (sum.value() == expected) return Ok{};
    return Error{ErrorCode::kBadData, "the checksum of " + name + " is wrong", content_.path(),
                 "resume from an older checkpoint, or --resume never"};
  }

  const CheckpointFile& file_;
  const io::ReadFile& content_;
  const TakeTensorPiece& take_;
  int64_t piece_bytes_ = 0;
  std::vector<size_t> order_;
};

}  // namespace

Status read_checkpoint_tensors(const Checkpoint& checkpoint, const CheckpointFile& file,
                               const TakeTensorPiece& take, int num_threads) {
  PLIMSOLL_ASSIGN(const io::ReadFile content, io::ReadFile::open(checkpoint.path + "/" + file.name));
  PLIMSOLL_TRY(check_size(content, file));
  return TensorReader(file, content, take)(num_threads);
}

Status verify_checkpoint(const Checkpoint& checkpoint, int num_threads) {
  const TakeTensorPiece nowhere = [](const CheckpointTensor&, int64_t, std::span<const std::byte>) -> Status {
    return Ok{};
  };
  for (const CheckpointFile& file : checkpoint.manifest.files)
    if (!file.tensors.empty()) PLIMSOLL_TRY(read_checkpoint_tensors(checkpoint, file, nowhere, num_threads));
  return Ok{};
}

}  // namespace plimsoll::checkpoints
