#include "train/fp16_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "io/parallel.h"
#include "optimizers/optimizer.h"
#include "planner/precision_report.h"
#include "runtime/session.h"

namespace plimsoll::train {
namespace {

constexpr uint32_t kTooLarge = std::bit_cast<uint32_t>(65520.0F), kInfinite = 0x7F800000;
constexpr size_t kBlock = 4096;
constexpr int64_t kPieceElements = int64_t{1} << 20;

bool is_beyond(float value) {
  const uint32_t magnitude = std::bit_cast<uint32_t>(value) & 0x7FFFFFFFU;
  return magnitude - kTooLarge < kInfinite - kTooLarge;
}

/// bf16 has no number between 65,280 and 65,536.
bool is_bf16_beyond(uint16_t bits) {
  return static_cast<uint16_t>((bits & 0x7FFFU) - 0x4780U) < 0x7F80U - 0x4780U;
}

template <typename T, typename Beyond>
std::optional<size_t> first_that(std::span<const T> values, Beyond beyond) {
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    uint32_t any = 0;  // without a branch an element
    for (const T value : block) any |= beyond(value) ? 1U : 0U;
    if (any == 0) continue;
    return begin + static_cast<size_t>(std::find_if(block.begin(), block.end(), beyond) - block.begin());
  }
  return {};
}

/// Elements [first, first + count) of a parameter: `values` is all of it, f32 or bf16.
struct Piece {
  const models::Parameter* parameter;
  runtime::TensorRef values;
  int64_t first, count;
};

const std::string& name_at(const models::Parameter& p, int64_t element) {
  const int64_t row = element / (p.shape.num_elements() / p.shape.dim(0));
  const auto view = std::find_if(p.views.begin(), p.views.end(), [&](const models::ParameterView& v) {
    return v.row <= row && row < v.row + v.shape.dim(0);
  });
  return view == p.views.end() ? p.name : view->name;
}

struct Found {
  int64_t element;
  float value;
};

std::optional<Found> beyond_in(const Piece& piece) {
  const auto count = static_cast<size_t>(piece.count);
  if (piece.parameter->dtype != ir::DType::kBf16) {
    const std::span values(piece.values.as<const float>() + piece.first, count);
    const auto at = first_beyond_fp16(values);
    return at ? std::optional(Found{piece.first + static_cast<int64_t>(*at), values[*at]}) : std::nullopt;
  }
  const std::span values(piece.values.as<const uint16_t>() + piece.first, count);
  const auto at = first_bf16_beyond_fp16(values);
  if (!at) return {};
  return Found{piece.first + static_cast<int64_t>(*at),
               std::bit_cast<float>(static_cast<uint32_t>(values[*at]) << 16)};
}

}  // namespace

std::optional<size_t> first_beyond_fp16(std::span<const float> values) {
  return first_that(values, is_beyond);
}

std::optional<size_t> first_bf16_beyond_fp16(std::span<const uint16_t> values) {
  return first_that(values, is_bf16_beyond);
}

Error beyond_fp16(const std::string& tensor, float value, bool kept) {
  return {ErrorCode::kBadData,
          fmt::format("{} holds {}, and fp16 ends at 65504: {} would be infinite", tensor, value,
                      kept ? "as a weight in fp16 it" : "products with it in fp16"),
          {},
          kept ? "set training.precision=bf16 training.state.weights=bf16, whose range is that of fp32"
               : "set training.precision=bf16, whose range is that of fp32, or give what multiplies with it "
                 "another one in training.precision_overrides"};
}

Status check_fp16_range(const models::Model& model, const runtime::Session& session, int num_threads) {
  const auto products = planner::precisions_of_products(session.plan());
  std::vector<Piece> pieces;
  for (const models::Parameter& p : model.parameters()) {
    const bool is_f16 = p.dtype == ir::DType::kF16;
    const std::string master = optimizers::master_name(p.name);
    const bool has_master = session.plan().find_state(master) != nullptr;
    const auto multiplied = products.find(p.name);
    const bool is_rounded = is_f16 || (multiplied != products.end() && multiplied->second.contains("f16"));
    if (!is_rounded || (is_f16 && !has_master)) continue;
    const runtime::TensorRef values = session.state(is_f16 ? master : p.name);
    const int64_t elements = p.shape.num_elements();
    for (int64_t first = 0; first < elements; first += kPieceElements)
      pieces.push_back({&p, values, first, std::min(kPieceElements, elements - first)});
  }
  return in_parallel(pieces.size(), num_threads, [&](size_t i, size_t) -> Status {
    const auto found = beyond_in(pieces[i]);
    if (!found) return Ok{};
    const models::Parameter& p = *pieces[i].parameter;
    return beyond_fp16(name_at(p, found->element), found->value, p.dtype == ir::DType::kF16);
  });
}

}  // namespace plimsoll::train
