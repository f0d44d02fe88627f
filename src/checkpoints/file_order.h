// The order of a tensor's elements in files, where it is not that of its storage: a convolution's filters are
// [in, height, width] in files and [height, width, in] in storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "models/model.h"
#include "runtime/transfer.h"

namespace plimsoll::checkpoints {

/// Of a tensor that is a row of filters. One position or one input: both orders are the same.
struct FileOrder {
  int64_t positions = 1;  ///< height * width of a filter
  int64_t inputs = 1;

  [[nodiscard]] bool is_stored() const { return positions == 1 || inputs == 1; }
  [[nodiscard]] int64_t filter() const { return positions * inputs; }
};
FileOrder file_order(const models::ParameterView& view);

/// The elements of whole filters, of `width` bytes each, from one order into the other.
void to_file_order(const FileOrder& order, int64_t width, std::span<const std::byte> stored,
                   std::span<std::byte> filed);
void to_stored_order(const FileOrder& order, int64_t width, std::span<const std::byte> filed,
                     std::span<std::byte> stored);

/// Bytes of filters that go through a buffer at once: whole ones, and at least one.
int64_t filter_buffer_bytes(const FileOrder& order, int64_t width);
/// The most that reading any of a model's parameters in file order takes.
int64_t file_order_bytes(const models::Model& model);

/// Reads `bytes` of a storage from `offset` on, as Session::read_pieces does of a state.
using ReadStored = std::function<Status(int64_t offset, int64_t bytes, const runtime::TakePiece& take)>;
/// All `bytes` of a tensor, as `read` gives them, in the order of files. Memory: two buffers of
/// filter_buffer_bytes, none where the orders are the same. Errors: of `read` and `take`.
Status read_in_file_order(const FileOrder& order, int64_t width, int64_t bytes, const ReadStored& read,
                          const runtime::TakePiece& take);

/// Reads `bytes` of a tensor in file order from `offset` on into a buffer.
using ReadFiled = std::function<Status(int64_t offset, std::span<std::byte> bytes)>;
/// The bytes [offset, offset + place.size()) of the storage from a tensor in a file, whose filters are read
/// whole. Memory: two filters.
Status fill_in_stored_order(const FileOrder& order, int64_t width, int64_t offset, std::span<std::byte> place,
                            const ReadFiled& read);

}  // namespace plimsoll::checkpoints
