#include "checkpoints/parameter_rows.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "numerics/convert.h"
#include "ops/block_values.h"
#include "runtime/session.h"
#include "settings/state_formats.h"

namespace plimsoll::checkpoints {

Result<ParameterPlace> place_of(const models::Model& model, const runtime::Session& session,
                                std::string_view view) {
  for (const models::Parameter& p : model.parameters())
    for (const models::ParameterView& v : p.views) {
      if (v.name != view) continue;
      const ir::TensorType& type = session.type(p.name);
      const ir::DType dtype = type.dtype;
      if (dtype != ir::DType::kF32 && !ir::is_half_precision(dtype) && !ir::is_block(dtype))
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} is kept in {}, and its adapter is initialised from the base weights",
                                 view, ir::name(dtype)),
                     {},
                     "keep the base in fp32, bf16 or fp16, or take plain adapters"};
      return ParameterPlace{p.name, v.row, v.shape.dim(0), v.shape.num_elements() / v.shape.dim(0), type};
    }
  PLIMSOLL_CHECK(false, std::string(view));
  return ParameterPlace{};
}

Result<ParameterRows> ParameterRows::open(const runtime::Session& session, ParameterPlace place) {
  ParameterRows rows(session, std::move(place));
  if (!ir::is_block(rows.place_.type.dtype)) return rows;
  PLIMSOLL_CHECK(rows.place_.row == 0 && rows.place_.rows == rows.place_.type.shape.dim(0),
                 rows.place_.state);
  rows.storage_.resize(static_cast<size_t>(rows.place_.type.bytes().count));
  PLIMSOLL_TRY(session.read(rows.place_.state, rows.storage_, 0));
  return rows;
}

Result<std::vector<float>> ParameterRows::read(int64_t first, int64_t count) const {
  const int64_t elements = count * place_.columns;
  std::vector<float> values(static_cast<size_t>(elements));
  if (!storage_.empty()) {
    ops::dequantize(place_.type, storage_.data(), first * place_.columns, std::span(values));
    return values;
  }
  const ir::DType dtype = place_.type.dtype;
  const int64_t width = ir::bits(dtype) / 8;
  std::vector<std::byte> bytes(static_cast<size_t>(elements * width));
  PLIMSOLL_TRY(session_->read(place_.state, bytes, (place_.row + first) * place_.columns * width));
  numerics::decode(settings::state_format(dtype).encoding, bytes, values);
  return values;
}

Result<std::vector<float>> read_parameter_rows(const models::Model& model, const runtime::Session& session,
                                               std::string_view view) {
  PLIMSOLL_ASSIGN(ParameterPlace place, place_of(model, session, view));
  PLIMSOLL_ASSIGN(const ParameterRows rows, ParameterRows::open(session, std::move(place)));
  return rows.read(0, rows.place().rows);
}

Status write_parameter_rows(runtime::Session& session, const ParameterPlace& place, int64_t first,
                            const std::vector<float>& values) {
  PLIMSOLL_CHECK(!ir::is_block(place.type.dtype), place.state);
  const int64_t width = ir::bits(place.type.dtype) / 8;
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(width));
  numerics::encode(settings::state_format(place.type.dtype).encoding, values, bytes);
  return session.write(place.state, bytes, (place.row + first) * place.columns * width);
}

Status write_parameter_rows(const models::Model& model, runtime::Session& session, std::string_view view,
                            const std::vector<float>& values) {
  PLIMSOLL_ASSIGN(const ParameterPlace place, place_of(model, session, view));
  return write_parameter_rows(session, place, 0, values);
}

}  // namespace plimsoll::checkpoints
