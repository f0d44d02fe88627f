// Tensors of a checkpoint, read in parallel to where they belong. A tensor is read and summed by one thread,
// piece by piece while the piece is in its cache; threads take the next tensor from the list, the largest
// first.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "io/checksum.h"
#include "io/file.h"
#include "train/checkpoint.h"

namespace plimsoll::train {
namespace {

/// Large enough that a system call costs nothing, small enough for a core's own cache.
constexpr int64_t kPieceBytes = 256 << 10;

class TensorReader {
 public:
  TensorReader(const Checkpoint& checkpoint, const CheckpointFile& file, const ReadFile& content,
               const TensorDestination& destination)
      : checkpoint_(checkpoint), file_(file), content_(content), destination_(destination) {
    for (size_t i = 0; i < file.tensors.size(); ++i) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return file.tensors[a].bytes > file.tensors[b].bytes; });
  }

  Status operator()(int num_threads) {
    PLIMSOLL_TRY(sum(0, file_.header_bytes, {}, file_.checksum, "its header"));
    {
      std::vector<std::jthread> others;
      const auto most = static_cast<int>(std::min<size_t>(order_.size(), 64));
      for (int i = 1; i < std::min(num_threads, most); ++i) others.emplace_back([this] { work(); });
      work();
    }
    return failed_at_ < order_.size() ? Status(failure_) : Status(Ok{});
  }

 private:
  void work() {
    for (size_t i; (i = next_.fetch_add(1)) < order_.size();) {
      const CheckpointTensor& t = file_.tensors[order_[i]];
      Status status = sum(t.offset, t.bytes, destination_(t), t.checksum, t.name);
      if (status) continue;
      const std::scoped_lock lock(mutex_);
      if (i >= failed_at_) continue;
      failed_at_ = i;  // the first in the order, whichever thread is first in time
      failure_ = std::move(status).error();
      next_ = order_.size();
    }
  }

  Status sum(int64_t offset, int64_t bytes, std::span<std::byte> to, uint64_t expected,
             const std::string& name) {
    std::vector<std::byte> buffer(to.empty() ? static_cast<size_t>(std::min(bytes, kPieceBytes)) : 0);
    Checksum sum;
    for (int64_t at = 0; at < bytes; at += kPieceBytes) {
      const auto size = static_cast<size_t>(std::min(kPieceBytes, bytes - at));
      const std::span<std::byte> piece =
          to.empty() ? std::span(buffer).first(size) : to.subspan(static_cast<size_t>(at), size);
      PLIMSOLL_TRY(content_.read_at(offset + at, piece));
      sum.add(piece);
    }
    if (sum.value() == expected) return Ok{};
    return Error{ErrorCode::kBadData, "the checksum of " + name + " is wrong", content_.path(),
                 "resume from an older checkpoint, or --resume never"};
  }

  const Checkpoint& checkpoint_;
  const CheckpointFile& file_;
  const ReadFile& content_;
  const TensorDestination& destination_;
  std::vector<size_t> order_;
  std::atomic<size_t> next_{0};
  std::mutex mutex_;
  size_t failed_at_ = SIZE_MAX;
  Error failure_;
};

}  // namespace

Status read_checkpoint_tensors(const Checkpoint& checkpoint, const CheckpointFile& file,
                               const TensorDestination& destination, int num_threads) {
  PLIMSOLL_ASSIGN(const ReadFile content, ReadFile::open(checkpoint.path + "/" + file.name));
  if (content.size_bytes() != file.bytes)
    return Error{ErrorCode::kBadData,
                 fmt::format("the file has {} bytes, {} were written", content.size_bytes(), file.bytes),
                 content.path(), "resume from an older checkpoint, or --resume never"};
  return TensorReader(checkpoint, file, content, destination)(num_threads);
}

Status verify_checkpoint(const Checkpoint& checkpoint, int num_threads) {
  const TensorDestination nowhere = [](const CheckpointTensor&) { return std::span<std::byte>(); };
  for (const CheckpointFile& file : checkpoint.manifest.files)
    if (!file.tensors.empty()) PLIMSOLL_TRY(read_checkpoint_tensors(checkpoint, file, nowhere, num_threads));
  return Ok{};
}

}  // namespace plimsoll::train
