#include "checkpoints/parameter_rows.h"

#include <fmt/format.h>

#include <cstring>
#include <span>
#include <utility>

#include "base/check.h"
#include "numerics/convert.h"
#include "ops/block_values.h"
#include "runtime/communicator.h"
#include "runtime/session.h"
#include "settings/state_formats.h"

namespace plimsoll::checkpoints {
namespace {

/// All bytes of a state that ranks share: each gives what it has.
Result<std::vector<std::byte>> gather(const runtime::Session& session, const passes::SharedState& shared,
                                      runtime::Communicator& ranks) {
  const passes::SessionPlan& plan = session.plan();
  const int64_t bytes = shared.type.bytes().count;
  const runtime::OwnRange own = runtime::own_range(plan, shared, ranks.rank(), 0, bytes);
  const bool has_owner = shared.owner >= 0;
  const int64_t kept = plan.states[static_cast<size_t>(shared.state)].decl.type.bytes().count;
  std::vector<std::byte> whole(static_cast<size_t>(bytes)), piece(static_cast<size_t>(has_owner ? 0 : kept));
  const std::span<std::byte> mine = has_owner ? std::span(whole) : std::span(piece);
  if (own.bytes > 0)
    PLIMSOLL_TRY(session.read_pieces(shared.name, own.skipped, own.bytes,
                                     [&](std::span<const std::byte> part, int64_t at) -> Status {
                                       std::memcpy(mine.data() + at, part.data(), part.size());
                                       return Ok{};
                                     }));
  PLIMSOLL_TRY(session.device().synchronize(ir::Queue::kCompute));  // programs use the communicator too
  PLIMSOLL_TRY(has_owner ? ranks.broadcast(shared.owner, whole) : ranks.gather(piece, whole));
  return whole;
}

}  // namespace

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

Result<ParameterRows> ParameterRows::open(const runtime::Session& session, ParameterPlace place,
                                          runtime::Communicator* ranks) {
  ParameterRows rows(session, std::move(place));
  const bool is_block = ir::is_block(rows.place_.type.dtype);
  PLIMSOLL_CHECK(!is_block || (rows.place_.row == 0 && rows.place_.rows == rows.place_.type.shape.dim(0)),
                 rows.place_.state);
  if (const passes::SharedState* shared = session.plan().find_shared(rows.place_.state)) {
    PLIMSOLL_CHECK(ranks != nullptr, rows.place_.state);
    PLIMSOLL_ASSIGN(rows.storage_, gather(session, *shared, *ranks));
    return rows;
  }
  if (!is_block) return rows;
  rows.storage_.resize(static_cast<size_t>(rows.place_.type.bytes().count));
  PLIMSOLL_TRY(session.read(rows.place_.state, rows.storage_, 0));
  return rows;
}

Result<std::vector<float>> ParameterRows::read(int64_t first, int64_t count) const {
  const int64_t elements = count * place_.columns;
  std::vector<float> values(static_cast<size_t>(elements));
  const ir::DType dtype = place_.type.dtype;
  if (ir::is_block(dtype)) {
    ops::dequantize(place_.type, storage_.data(), first * place_.columns, std::span(values));
    return values;
  }
  const int64_t width = ir::bits(dtype) / 8, offset = (place_.row + first) * place_.columns * width;
  std::vector<std::byte> bytes(storage_.empty() ? static_cast<size_t>(elements * width) : 0);
  if (storage_.empty()) PLIMSOLL_TRY(session_->read(place_.state, bytes, offset));
  const std::span<const std::byte> held =
      storage_.empty()
          ? std::span<const std::byte>(bytes)
          : std::span(storage_).subspan(static_cast<size_t>(offset), static_cast<size_t>(elements * width));
  numerics::decode(settings::state_format(dtype).encoding, held, values);
  return values;
}

Result<std::vector<float>> read_parameter_rows(const models::Model& model, const runtime::Session& session,
                                               std::string_view view, runtime::Communicator* ranks) {
  PLIMSOLL_ASSIGN(ParameterPlace place, place_of(model, session, view));
  PLIMSOLL_ASSIGN(const ParameterRows rows, ParameterRows::open(session, std::move(place), ranks));
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
