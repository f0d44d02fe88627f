#include "checkpoints/file_order.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace plimsoll::checkpoints {
namespace {

/// So much of a tensor at once that copies from a device are worth their call.
constexpr int64_t kBufferBytes = 64 << 10;

/// [rows, columns] matrices one after the other, each transposed.
template <size_t kWidth>
void transpose_each(int64_t rows, int64_t columns, std::span<const std::byte> from, std::span<std::byte> to) {
  const auto matrix = static_cast<size_t>(rows * columns) * kWidth;
  for (size_t at = 0; at + matrix <= from.size(); at += matrix)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        std::memcpy(to.data() + at + static_cast<size_t>(c * rows + r) * kWidth,
                    from.data() + at + static_cast<size_t>(r * columns + c) * kWidth, kWidth);
}

void transpose_all(int64_t width, int64_t rows, int64_t columns, std::span<const std::byte> from,
                   std::span<std::byte> to) {
  if (width == 4) return transpose_each<4>(rows, columns, from, to);
  if (width == 2) return transpose_each<2>(rows, columns, from, to);
  transpose_each<1>(rows, columns, from, to);
}

}  // namespace

FileOrder file_order(const models::ParameterView& view) {
  if (view.form != models::FileForm::kFilters) return {};
  return {.positions = view.shape.dim(1) * view.shape.dim(2), .inputs = view.shape.dim(3)};
}

void to_file_order(const FileOrder& order, int64_t width, std::span<const std::byte> stored,
                   std::span<std::byte> filed) {
  transpose_all(width, order.positions, order.inputs, stored, filed);
}

void to_stored_order(const FileOrder& order, int64_t width, std::span<const std::byte> filed,
                     std::span<std::byte> stored) {
  transpose_all(width, order.inputs, order.positions, filed, stored);
}

int64_t filter_buffer_bytes(const FileOrder& order, int64_t width) {
  const int64_t filter = order.filter() * width;
  return std::max<int64_t>(1, kBufferBytes / filter) * filter;
}

int64_t file_order_bytes(const models::Model& model) {
  int64_t bytes = 0;
  for (const models::Parameter& p : model.parameters())
    for (const models::ParameterView& view : p.views)
      if (const FileOrder order = file_order(view); !order.is_stored())
        bytes = std::max(bytes, 2 * filter_buffer_bytes(order, 4));
  return bytes;
}

Status read_in_file_order(const FileOrder& order, int64_t width, int64_t bytes, const ReadStored& read,
                          const runtime::TakePiece& take) {
  if (order.is_stored()) return read(0, bytes, take);
  const int64_t most = filter_buffer_bytes(order, width);
  std::vector<std::byte> stored(static_cast<size_t>(most)), filed(static_cast<size_t>(most));
  for (int64_t at = 0; at < bytes; at += most) {
    const auto count = static_cast<size_t>(std::min(most, bytes - at));
    PLIMSOLL_TRY(read(at, static_cast<int64_t>(count), [&](std::span<const std::byte> piece, int64_t begin) {
      std::memcpy(stored.data() + begin, piece.data(), piece.size());
      return Status(Ok{});
    }));
    to_file_order(order, width, std::span(stored).first(count), filed);
    PLIMSOLL_TRY(take(std::span(filed).first(count), at));
  }
  return Ok{};
}

Status fill_in_stored_order(const FileOrder& order, int64_t width, int64_t offset, std::span<std::byte> place,
                            const ReadFiled& read) {
  const int64_t filter = order.filter() * width;
  std::vector<std::byte> filed(static_cast<size_t>(filter)), stored(static_cast<size_t>(filter));
  const int64_t end = offset + static_cast<int64_t>(place.size());
  for (int64_t at = offset / filter * filter; at < end; at += filter) {
    PLIMSOLL_TRY(read(at, filed));
    to_stored_order(order, width, filed, stored);
    const int64_t first = std::max(at, offset), last = std::min(at + filter, end);
    std::memcpy(place.data() + (first - offset), stored.data() + (first - at),
                static_cast<size_t>(last - first));
  }
  return Ok{};
}

}  // namespace plimsoll::checkpoints
