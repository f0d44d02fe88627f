#include "library/parameter_values.h"

#include <algorithm>
#include <vector>

#include "numerics/convert.h"
#include "optimizers/optimizer.h"

namespace plimsoll::library {
namespace {

/// Elements at once, where their order is that of the storage.
constexpr int64_t kPiece = 1 << 16;

numerics::Format format_of(ir::DType dtype) {
  return dtype == ir::DType::kBf16  ? numerics::Format::kBf16
         : dtype == ir::DType::kF16 ? numerics::Format::kFp16
                                    : numerics::Format::kFp32;
}

Status write_state(runtime::Session& session, const std::string& state, int64_t first,
                   std::span<const float> values) {
  const ir::DType dtype = session.type(state).dtype;
  const int64_t bytes = ir::bits(dtype) / 8;
  std::vector<std::byte> codes(values.size() * static_cast<size_t>(bytes));
  numerics::encode(format_of(dtype), values, codes);
  return session.write(state, codes, first * bytes);
}

/// Whole filters.
int64_t piece_of(const checkpoints::FileOrder& order) {
  return order.is_stored() ? kPiece : checkpoints::filter_buffer_bytes(order, 4) / 4;
}

Status read_stored(const runtime::Session& session, const std::string& state, std::span<float> values) {
  const ir::DType dtype = session.type(state).dtype;
  if (dtype == ir::DType::kF32) return session.read(state, std::as_writable_bytes(values));
  const int64_t bytes = ir::bits(dtype) / 8;
  std::vector<std::byte> codes(static_cast<size_t>(std::min(kPiece, std::ssize(values)) * bytes));
  for (int64_t first = 0; first < std::ssize(values); first += kPiece) {
    const auto size = static_cast<size_t>(std::min(kPiece, std::ssize(values) - first));
    const std::span<std::byte> piece = std::span(codes).first(size * static_cast<size_t>(bytes));
    PLIMSOLL_TRY(session.read(state, piece, first * bytes));
    numerics::decode(format_of(dtype), piece, values.subspan(static_cast<size_t>(first), size));
  }
  return Ok{};
}

}  // namespace

Status write_stored(runtime::Session& session, const std::string& state, int64_t first,
                    std::span<const float> values) {
  const std::string master = optimizers::master_name(state);
  if (session.plan().find_state(master) != nullptr) PLIMSOLL_TRY(write_state(session, master, first, values));
  return write_state(session, state, first, values);
}

Status write_values(runtime::Session& session, const NamedTensor& tensor, std::span<const float> values) {
  const int64_t most = piece_of(tensor.order);
  std::vector<float> stored(tensor.order.is_stored() ? 0 : static_cast<size_t>(most));
  for (int64_t first = 0; first < std::ssize(values); first += most) {
    std::span<const float> piece = values.subspan(
        static_cast<size_t>(first), static_cast<size_t>(std::min(most, std::ssize(values) - first)));
    if (!tensor.order.is_stored()) {
      const std::span<float> turned = std::span(stored).first(piece.size());
      checkpoints::to_stored_order(tensor.order, 4, std::as_bytes(piece), std::as_writable_bytes(turned));
      piece = turned;
    }
    PLIMSOLL_TRY(write_stored(session, tensor.name, first, piece));
  }
  return session.synchronize();
}

Status read_values(const runtime::Session& session, const NamedTensor& tensor, std::span<float> values) {
  PLIMSOLL_TRY(read_stored(session, tensor.name, values));
  to_callers_order(tensor.order, values);
  return Ok{};
}

void to_callers_order(const checkpoints::FileOrder& order, std::span<float> values) {
  if (order.is_stored()) return;
  const auto filter = static_cast<size_t>(order.filter());
  std::vector<float> stored(filter);
  for (size_t at = 0; at + filter <= values.size(); at += filter) {
    const std::span<float> place = values.subspan(at, filter);
    std::ranges::copy(place, stored.begin());
    checkpoints::to_file_order(order, 4, std::as_bytes(std::span(stored)), std::as_writable_bytes(place));
  }
}

}  // namespace plimsoll::library
