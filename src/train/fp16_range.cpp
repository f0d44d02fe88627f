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

/// Elements [first, first + count) of a parameter's f32 values.
struct Piece {
  const models::Parameter* parameter;
  const float* values;
  int64_t first, count;
};

const std::string& name_at(const models::Parameter& p, int64_t element) {
  const int64_t row = element / (p.shape.num_elements() / p.shape.dim(0));
  const auto view = std::find_if(p.views.begin(), p.views.end(), [&](const models::ParameterView& v) {
    return v.row <= row && row < v.row + v.shape.dim(0);
  });
  return view == p.views.end() ? p.name : view->name;
}

}  // namespace

std::optional<size_t> first_beyond_fp16(std::span<const float> values) {
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    uint32_t any = 0;  // without a branch an element
    for (const float value : block) any |= is_beyond(value) ? 1U : 0U;
    if (any == 0) continue;
    return begin + static_cast<size_t>(std::find_if(block.begin(), block.end(), is_beyond) - block.begin());
  }
  return {};
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
    const std::string master = optimizers::master_name(p.name);
    const bool has_master = session.plan().find_state(master) != nullptr;
    const auto multiplied = products.find(p.name);
    const bool is_rounded =
        p.dtype == ir::DType::kF16 || (multiplied != products.end() && multiplied->second.contains("f16"));
    if (!is_rounded || (p.dtype != ir::DType::kF32 && !has_master)) continue;
    const auto* values = session.state(has_master ? master : p.name).as<const float>();
    const int64_t elements = p.shape.num_elements();
    for (int64_t first = 0; first < elements; first += kPieceElements)
      pieces.push_back({&p, values + first, first, std::min(kPieceElements, elements - first)});
  }
  return in_parallel(pieces.size(), num_threads, [&](size_t i, size_t) -> Status {
    const Piece& piece = pieces[i];
    const auto at = first_beyond_fp16({piece.values, static_cast<size_t>(piece.count)});
    if (!at) return Ok{};
    return beyond_fp16(name_at(*piece.parameter, piece.first + static_cast<int64_t>(*at)), piece.values[*at],
                       piece.parameter->dtype == ir::DType::kF16);
  });
}

}  // namespace plimsoll::train
