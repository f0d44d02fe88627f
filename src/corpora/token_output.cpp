// Source of the header: NumPy's "NPY format" (numpy.lib.format), version 1.0. It has a fixed size here, so
// that the number of tokens can be written in when it is known.
#include "corpora/token_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace plimsoll::corpora {
namespace {

constexpr int64_t kNpyHeaderBytes = 128;  // a multiple of 64, as NumPy writes it
constexpr size_t kBufferBytes = size_t{1} << 20;

std::string npy_header(int id_bytes, int64_t num_tokens) {
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(kNpyHeaderBytes - 10);
  header += '\0';
  header += fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}",
                        id_bytes == 2 ? "<u2" : "<i4", num_tokens);
  header.resize(kNpyHeaderBytes - 1, ' ');
  return header + '\n';
}

}  // namespace

Result<NpyWriter> NpyWriter::create(const std::string& path, int64_t vocab_size) {
  PLIMSOLL_ASSIGN(io::AtomicFile file, io::AtomicFile::create(path));
  NpyWriter writer(std::move(file), vocab_size <= 65536 ? 2 : 4);
  writer.offset_ = kNpyHeaderBytes;
  writer.buffer_.reserve(kBufferBytes);
  return writer;
}

Status NpyWriter::flush() {
  PLIMSOLL_TRY(file_.write_at(offset_, buffer_));
  offset_ += static_cast<int64_t>(buffer_.size());
  buffer_.clear();
  return Ok{};
}

Status NpyWriter::add(std::span<const int32_t> ids) {
  num_tokens_ += static_cast<int64_t>(ids.size());
  const auto width = static_cast<size_t>(id_bytes_);
  while (!ids.empty()) {
    if (buffer_.size() + width > kBufferBytes) PLIMSOLL_TRY(flush());
    const size_t at = buffer_.size();
    const size_t count = std::min(ids.size(), (kBufferBytes - at) / width);
    buffer_.resize(at + count * width);
    // The low bytes come first in memory.
    for (size_t i = 0; i < count; ++i) std::memcpy(buffer_.data() + at + i * width, &ids[i], width);
    ids = ids.subspan(count);
  }
  return Ok{};
}

Status NpyWriter::finish() {
  PLIMSOLL_TRY(flush());
  const std::string header = npy_header(id_bytes_, num_tokens_);
  PLIMSOLL_TRY(file_.write_at(0, std::as_bytes(std::span(header))));
  return file_.commit();
}

Result<TokenOutput> TokenOutput::create(const std::string& path, const datasets::ShardOptions& options) {
  TokenOutput output;
  if (path.ends_with(".npy")) {
    PLIMSOLL_ASSIGN(output.npy_, NpyWriter::create(path, options.vocab_size));
  } else {
    PLIMSOLL_ASSIGN(output.shard_, datasets::ShardWriter::create(path, options));
  }
  return output;
}

Status TokenOutput::add(std::span<const int32_t> ids, std::span<const uint8_t> in_loss, bool continues) {
  return npy_ ? npy_->add(ids) : shard_->add(ids, in_loss, continues);
}

Status TokenOutput::finish() {
  if (npy_) return npy_->finish();
  PLIMSOLL_TRY(shard_->finish());
  return Ok{};
}

}  // namespace plimsoll::corpora
