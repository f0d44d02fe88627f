#include "checkpoints/fp16_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "io/parallel.h"
#include "ir/op_def.h"
#include "optimizers/optimizer.h"
#include "planner/report/precision_report.h"
#include "runtime/communicator.h"
#include "runtime/session.h"

namespace plimsoll::checkpoints {
namespace {

constexpr uint32_t kTooLarge = std::bit_cast<uint32_t>(65520.0F), kInfinite = 0x7F800000;
constexpr size_t kRangeBlock = 4096;
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
  for (size_t begin = 0; begin < values.size(); begin += kRangeBlock) {
    const auto block = values.subspan(begin, std::min(kRangeBlock, values.size() - begin));
    uint32_t any = 0;  // without a branch an element
    for (const T value : block) any |= beyond(value) ? 1U : 0U;
    if (any == 0) continue;
    return begin + static_cast<size_t>(std::find_if(block.begin(), block.end(), beyond) - block.begin());
  }
  return {};
}

/// Values [first, first + count) of those that `state` holds from the byte `at` on, as f32 or bf16: a
/// parameter's elements, or, of one in few bits, scales, which no number is larger than.
struct CheckedPiece {
  const models::Parameter* parameter;
  Fp16Use use;
  std::string state;
  ir::DType dtype;
  int64_t at, elements_each;  ///< a value stands for so many elements
  float offset;               ///< that each value is relative to
  int64_t first, count;
};

const std::string& name_at(const models::Parameter& p, int64_t element) {
  const int64_t row = element / (p.shape.num_elements() / p.shape.dim(0));
  const auto view = std::find_if(p.views.begin(), p.views.end(), [&](const models::ParameterView& v) {
    return v.row <= row && row < v.row + v.shape.dim(0);
  });
  return view == p.views.end() ? p.name : view->name;
}

/// The state whose elements a value has, if it is one's: as it is, viewed or row by row, in whatever dtype.
const std::string* source_of(const ir::Graph& graph, ir::ValueId value) {
  for (;;) {
    const ir::Op& op = graph.op(graph.value(value).producer);
    if (op.def->state == ir::StateAccess::kRead) return &op.attrs.str("name");
    if (op.def->elements == ir::Elements::kComputed) return nullptr;
    value = op.inputs[0];
  }
}

/// Parameters that reach a residual stream in fp16 unchanged.
std::set<std::string, std::less<>> in_residual_streams(const passes::SessionPlan& session) {
  std::set<std::string, std::less<>> names;
  for (const passes::Program& program : session.programs)
    for (const ir::OpId id : program.graph.order()) {
      const ir::Op& op = program.graph.op(id);
      if (op.def->elements == ir::Elements::kComputed || op.def->is_view) continue;
      if (program.graph.type(op.outputs[0]).dtype != ir::DType::kF16) continue;
      if (const std::string* name = source_of(program.graph, op.inputs[0])) names.insert(*name);
    }
  return names;
}

/// How programs of the session round parameters to fp16, f16 ones from their masters; nothing: they do not.
class Roundings {
 public:
  Roundings(const settings::RunConfig& config, const passes::SessionPlan& session)
      : products_(planner::precisions_of_products(session)),
        streams_(in_residual_streams(session)),
        of_products_(config.training.precision == settings::Precision::kFp16 ? Fp16Use::kProducts
                                                                             : Fp16Use::kOverride) {}

  [[nodiscard]] std::optional<Fp16Use> of(const models::Parameter& p) const {
    if (p.dtype == ir::DType::kF16) return Fp16Use::kWeight;
    if (const auto found = products_.find(p.name); found != products_.end() && found->second.contains("f16"))
      return of_products_;
    return streams_.contains(p.name) ? std::optional(Fp16Use::kResidual) : std::nullopt;
  }

 private:
  std::map<std::string, std::set<std::string>, std::less<>> products_;
  std::set<std::string, std::less<>> streams_;
  Fp16Use of_products_;
};

struct Found {
  int64_t value_index;
  float value;
};

/// Of values whose first one is the parameter's element `first`.
std::optional<Found> beyond_in(std::span<const std::byte> bytes, const CheckedPiece& piece, int64_t first) {
  if (piece.dtype != ir::DType::kBf16) {
    const std::span values(reinterpret_cast<const float*>(bytes.data()), bytes.size() / 4);
    if (piece.offset != 0) {
      for (size_t i = 0; i < values.size(); ++i)
        if (const float most = std::fabs(values[i]) + std::fabs(piece.offset); is_beyond(most))
          return Found{first + static_cast<int64_t>(i), most};
      return {};
    }
    const auto at = first_beyond_fp16(values);
    return at ? std::optional(Found{first + static_cast<int64_t>(*at), values[*at]}) : std::nullopt;
  }
  const std::span values(reinterpret_cast<const uint16_t*>(bytes.data()), bytes.size() / 2);
  const auto at = first_bf16_beyond_fp16(values);
  if (!at) return {};
  return Found{first + static_cast<int64_t>(*at),
               std::bit_cast<float>(static_cast<uint32_t>(values[*at]) << 16)};
}

Status check_piece(const runtime::Session& session, const CheckedPiece& piece) {
  const int64_t width = ir::bits(piece.dtype) / 8;
  return session.read_pieces(piece.state, piece.at + piece.first * width, piece.count * width,
                             [&](std::span<const std::byte> bytes, int64_t at) -> Status {
                               const auto found = beyond_in(bytes, piece, piece.first + at / width);
                               if (!found) return Ok{};
                               const int64_t element = found->value_index * piece.elements_each;
                               return beyond_fp16(name_at(*piece.parameter, element), found->value,
                                                  piece.use);
                             });
}

/// The f32 at a byte of a state. Where ranks share that, the one that has the byte tells the others.
Result<float> number_at(const runtime::Session& session, const std::string& state, int64_t byte,
                        runtime::Communicator* ranks) {
  float number = 0;
  PLIMSOLL_TRY(session.read_pieces(state, byte, sizeof(number),
                                   [&](std::span<const std::byte> bytes, int64_t) -> Status {
                                     std::memcpy(&number, bytes.data(), sizeof(number));
                                     return Ok{};
                                   }));
  const passes::SessionPlan& plan = session.plan();
  const passes::SharedState* shared = plan.find_shared(state);
  if (shared == nullptr) return number;
  PLIMSOLL_CHECK(ranks != nullptr, "a number of another rank");
  const int64_t piece = plan.states[static_cast<size_t>(shared->state)].decl.type.bytes().count;
  const int owner = shared->owner >= 0 ? shared->owner : static_cast<int>(byte / piece);
  PLIMSOLL_TRY(session.device().synchronize(ir::Queue::kCompute));  // programs use the communicator, too
  PLIMSOLL_TRY(ranks->broadcast(owner, std::as_writable_bytes(std::span(&number, 1))));
  return number;
}

/// What of a parameter's state is to be looked at, all of it as one piece.
Result<CheckedPiece> checked_values(const models::Parameter& p, Fp16Use use, const std::string& state,
                                    const runtime::Session& session, runtime::Communicator* ranks) {
  const ir::TensorType& type = session.type(state);
  const int64_t elements = type.num_elements();
  if (!ir::is_block(type.dtype)) return CheckedPiece{&p, use, state, type.dtype, 0, 1, 0, 0, elements};
  const ir::Components parts = ir::components(type.dtype, elements, type.shape.dim(-1));
  const bool is_nested = parts.size() == 4;
  const ir::Component& scales = parts[is_nested ? 2 : 1];
  float offset = 0;
  if (is_nested) {
    PLIMSOLL_ASSIGN(offset, number_at(session, state, parts[3].offset, ranks));
  }
  const int64_t each = (elements + scales.num_elements - 1) / scales.num_elements;
  return CheckedPiece{&p, use, state, ir::DType::kF32, scales.offset, each, offset, 0, scales.num_elements};
}

}  // namespace

std::optional<size_t> first_beyond_fp16(std::span<const float> values) {
  return first_that(values, is_beyond);
}

std::optional<size_t> first_bf16_beyond_fp16(std::span<const uint16_t> values) {
  return first_that(values, is_bf16_beyond);
}

Error beyond_fp16(const std::string& tensor, float value, Fp16Use use) {
  static constexpr std::array<std::pair<const char*, const char*>, 4> kWhatAndHint = {{
      {"as a weight in fp16 it",
       "set training.precision=bf16 training.state.weights=bf16, whose range is that of fp32"},
      {"products with it in fp16",
       "set training.precision=bf16, whose range is that of fp32, or set another precision for the ops that "
       "read it in training.precision_overrides"},
      {"products with it in fp16",
       "drop the overrides to fp16 in training.precision_overrides, or make them bf16, "
       "whose range is that of fp32"},
      {"a residual stream in fp16",
       "set training.precision=bf16, whose range is that of fp32, or training.residual_in_fp32=true"},
  }};
  const auto& [what, hint] = kWhatAndHint[static_cast<size_t>(use)];
  return {ErrorCode::kBadData,
          fmt::format("{} holds {}, and fp16 ends at 65504: {} would be infinite", tensor, value, what),
          {},
          hint};
}

Status check_fp16_range(const settings::RunConfig& config, const models::Model& model,
                        const runtime::Session& session, int num_threads, runtime::Communicator* ranks) {
  const Roundings roundings(config, session.plan());
  std::vector<CheckedPiece> pieces;
  for (const models::Parameter& p : model.parameters()) {
    const std::optional<Fp16Use> use = roundings.of(p);
    const bool is_f16 = p.dtype == ir::DType::kF16;
    const std::string master = optimizers::master_name(p.name);
    if (!use || (is_f16 && !session.plan().has_state(master))) continue;
    const std::string& state = is_f16 ? master : p.name;
    PLIMSOLL_ASSIGN(CheckedPiece all, checked_values(p, *use, state, session, ranks));
    for (const int64_t count = all.count; all.first < count; all.first += kPieceElements) {
      all.count = std::min(kPieceElements, count - all.first);
      pieces.push_back(all);
    }
  }
  return io::in_parallel(pieces.size(), num_threads,
                         [&](size_t i, size_t) { return check_piece(session, pieces[i]); });
}

}  // namespace plimsoll::checkpoints
