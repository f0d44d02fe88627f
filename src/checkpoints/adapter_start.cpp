#include "checkpoints/adapter_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "checkpoints/adapter_change.h"
#include "checkpoints/parameter_rows.h"
#include "numerics/low_rank.h"
#include "runtime/session.h"

namespace plimsoll::checkpoints {
namespace {

using Values = std::vector<float>;

/// Squares of the rows of W + s B A [outs]; W lies as [outs, in], or transposed.
Result<Values> norms(const ParameterRows& base, bool transposed, const Values& a, const Values& b,
                     double scale) {
  const ParameterPlace& w = base.place();
  const auto outs = static_cast<size_t>(transposed ? w.columns : w.rows);
  const auto in = static_cast<size_t>(transposed ? w.rows : w.columns);
  const size_t rank = a.size() / in;
  const bool plain = std::all_of(b.begin(), b.end(), [](float v) { return v == 0; });
  std::vector<double> squares(outs, 0.0);
  for (int64_t r = 0; r < w.rows; ++r) {
    PLIMSOLL_ASSIGN(const Values row, base.read(r, 1));
    for (size_t c = 0; c < row.size(); ++c) {
      const size_t o = transposed ? c : static_cast<size_t>(r), i = transposed ? static_cast<size_t>(r) : c;
      double value = static_cast<double>(row[c]);
      for (size_t k = 0; !plain && k < rank; ++k)
        value += scale * static_cast<double>(b[o * rank + k]) * static_cast<double>(a[k * in + i]);
      squares[o] += value * value;
    }
  }
  Values out(outs);
  for (size_t o = 0; o < outs; ++o) out[o] = static_cast<float>(std::sqrt(squares[o]));
  return out;
}

/// The names of what belongs to one adapted tensor.
struct PartNames {
  std::string weight, a;
  const models::Adapter::Part* part;
  bool transposed;
};

Status take_factors(const models::Model& model, runtime::Session& session, const PartNames& names) {
  PLIMSOLL_ASSIGN(Values w, read_parameter_rows(model, session, names.weight));
  const models::Adapter::Part& part = *names.part;
  const int64_t outs = part.out, in = static_cast<int64_t>(w.size()) / outs;
  if (names.transposed) w = transpose(w, static_cast<size_t>(in), static_cast<size_t>(outs));
  const numerics::LowRankFactors f =
      low_rank_factors(w, {outs, in, part.rank, part.scale}, model.adapters()->factors);
  subtract_factors(f, {outs, in, part.rank, part.scale}, w);
  if (names.transposed) w = transpose(w, static_cast<size_t>(outs), static_cast<size_t>(in));
  PLIMSOLL_TRY(write_parameter_rows(model, session, names.weight, w));
  PLIMSOLL_TRY(write_parameter_rows(model, session, names.a, f.right));
  return write_parameter_rows(model, session, part.b, f.left);
}

Status set_magnitude(const models::Model& model, runtime::Session& session, const PartNames& names) {
  PLIMSOLL_ASSIGN(ParameterPlace place, place_of(model, session, names.weight));
  PLIMSOLL_ASSIGN(const ParameterRows w, ParameterRows::open(session, std::move(place)));
  PLIMSOLL_ASSIGN(const Values a, read_parameter_rows(model, session, names.a));
  PLIMSOLL_ASSIGN(const Values b, read_parameter_rows(model, session, names.part->b));
  PLIMSOLL_ASSIGN(const Values magnitude, norms(w, names.transposed, a, b, names.part->scale));
  return write_parameter_rows(model, session, names.part->magnitude, magnitude);
}

/// Of a matrix that stays whole, once it is loaded; of one in few bits quantized_start.h does, while it is.
/// LoftQ has nothing to make up for there.
bool takes_factors(const models::Adapters& adapters, ir::DType dtype) {
  return !ir::is_block(dtype) &&
         (adapters.factors == models::Factors::kSvd || adapters.factors == models::Factors::kQr);
}

Status start_part(const models::Model& model, runtime::Session& session, const PartNames& names) {
  PLIMSOLL_ASSIGN(const ParameterPlace place, place_of(model, session, names.weight));
  if (takes_factors(*model.adapters(), place.type.dtype)) PLIMSOLL_TRY(take_factors(model, session, names));
  return names.part->magnitude.empty() ? Status(Ok{}) : set_magnitude(model, session, names);
}

Status start_rows(const models::Model& model, runtime::Session& session) {
  const models::TokenRows& rows = model.adapters()->token_rows;
  if (rows.rows.empty()) return Ok{};
  const std::string table = rows.rows.substr(0, rows.rows.find(".token_adapter")) + ".weight";
  PLIMSOLL_ASSIGN(ParameterPlace place, place_of(model, session, table));
  PLIMSOLL_ASSIGN(const ParameterRows from, ParameterRows::open(session, std::move(place)));
  PLIMSOLL_ASSIGN(const ParameterPlace to, place_of(model, session, rows.rows));
  for (size_t i = 0; i < rows.tokens.size(); ++i) {
    PLIMSOLL_ASSIGN(const Values row, from.read(rows.tokens[i], 1));
    PLIMSOLL_TRY(write_parameter_rows(session, to, static_cast<int64_t>(i), row));
  }
  return Ok{};
}

}  // namespace

numerics::LowRankFactors low_rank_factors(std::span<const float> w, const AdaptedShape& shape,
                                          models::Factors kind) {
  const bool by_qr = kind == models::Factors::kQr;
  numerics::LowRankFactors f = by_qr ? numerics::first_of_qr(w, shape.outs, shape.in, shape.rank)
                                     : numerics::largest_singular(w, shape.outs, shape.in, shape.rank);
  const double share = by_qr ? 1.0 : 1.0 / std::sqrt(shape.scale);
  for (Values* side : {&f.left, &f.right})
    for (float& v : *side) v = static_cast<float>(static_cast<double>(v) * share);
  return f;
}

void subtract_factors(const numerics::LowRankFactors& f, const AdaptedShape& shape, std::span<float> w) {
  const auto rank = static_cast<size_t>(shape.rank), in = static_cast<size_t>(shape.in);
  std::vector<double> row(in);
  for (size_t o = 0; o < static_cast<size_t>(shape.outs); ++o) {
    std::fill(row.begin(), row.end(), 0.0);
    for (size_t k = 0; k < rank; ++k)
      for (size_t i = 0; i < in; ++i)
        row[i] += static_cast<double>(f.left[o * rank + k]) * static_cast<double>(f.right[k * in + i]);
    for (size_t i = 0; i < in; ++i)
      w[o * in + i] = static_cast<float>(static_cast<double>(w[o * in + i]) - shape.scale * row[i]);
  }
}

const models::Adapter::Part* adapter_part(const models::Model& model, const models::Parameter& parameter,
                                          const models::ParameterView& view) {
  if (parameter.is_adapter) return nullptr;
  const models::Adapter* adapter =
      model.adapter_of(parameter.part_of.empty() ? parameter.name : parameter.part_of);
  if (adapter == nullptr) return nullptr;
  const std::string b = view.name.substr(0, view.name.rfind('.')) + ".lora_B.weight";
  const auto part = std::ranges::find(adapter->parts, b, &models::Adapter::Part::b);
  return part == adapter->parts.end() || part->rank == 0 ? nullptr : &*part;
}

int64_t start_adapters_bytes(const models::Model& model) {
  if (!model.adapters()) return 0;
  const models::Factors factors = model.adapters()->factors;
  int64_t most = 0;
  for (const models::Parameter& p : model.parameters())
    for (const models::ParameterView& view : p.views) {
      const models::Adapter::Part* part = adapter_part(model, p, view);
      if (part == nullptr) continue;
      const bool in_few_bits = ir::is_block(p.dtype);
      const int64_t elements = view.shape.num_elements(), in = elements / part->out;
      const int64_t storage = in_few_bits ? ir::TensorType{p.dtype, view.shape}.bytes().count : 0;
      if (in_few_bits ? p.is_stored || factors == models::Factors::kNone
                      : !takes_factors(*model.adapters(), p.dtype)) {
        if (!part->magnitude.empty()) most = std::max(most, storage);
        continue;
      }
      const int64_t turned = p.transposed ? 4 * elements : 0;
      // Codes and scales, and what they are made through.
      const int64_t rounding = in_few_bits ? 2 * storage + elements / 4 : 0;
      const int64_t decomposing = factors == models::Factors::kQr
                                      ? 8 * part->rank * part->out
                                      : numerics::largest_singular_bytes(part->out, in, part->rank);
      most =
          std::max(most, 8 * elements + turned + rounding + 8 * part->rank * (in + part->out) + decomposing);
    }
  return most;
}

Status start_adapters(const models::Model& model, runtime::Session& session) {
  if (!model.adapters()) return Ok{};
  for (const models::Adapter& adapter : model.adapters()->linears)
    for (const models::Parameter& p : model.parameters()) {
      if (p.name != adapter.weight && p.part_of != adapter.weight) continue;
      for (const models::ParameterView& view : p.views) {
        const std::string module = view.name.substr(0, view.name.rfind('.'));
        for (const models::Adapter::Part& part : adapter.parts)
          if (part.rank > 0 && part.b == module + ".lora_B.weight")
            PLIMSOLL_TRY(
                start_part(model, session, {view.name, module + ".lora_A.weight", &part, p.transposed}));
      }
    }
  return start_rows(model, session);
}

}  // namespace plimsoll::checkpoints
