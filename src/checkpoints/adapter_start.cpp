#include "checkpoints/adapter_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "numerics/convert.h"
#include "numerics/low_rank.h"
#include "runtime/session.h"
#include "settings/state_formats.h"

namespace plimsoll::train {
namespace {

using Values = std::vector<float>;

/// A tensor of the checkpoint as rows of a state.
struct Place {
  std::string state;
  int64_t row = 0, rows = 0, columns = 0;
  ir::DType dtype = ir::DType::kF32;
};

Result<Place> place_of(const models::Model& model, const runtime::Session& session, std::string_view view) {
  for (const models::Parameter& p : model.parameters())
    for (const models::ParameterView& v : p.views) {
      if (v.name != view) continue;
      const ir::DType dtype = session.type(p.name).dtype;
      if (dtype != ir::DType::kF32 && dtype != ir::DType::kBf16 && dtype != ir::DType::kF16)
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} is kept in {}, and its adapter begins with what the base holds", view,
                                 ir::name(dtype)),
                     {},
                     "keep the base in fp32, bf16 or fp16, or take plain adapters"};
      return Place{p.name, v.row, v.shape.dim(0), v.shape.num_elements() / v.shape.dim(0), dtype};
    }
  PLIMSOLL_CHECK(false, std::string(view));
  return Place{};
}

/// Rows [first, first + count) of the place.
Result<Values> read_rows(const runtime::Session& session, const Place& place, int64_t first, int64_t count) {
  const numerics::Format format = state_format(place.dtype).encoding;
  const int64_t width = ir::bits(place.dtype) / 8, elements = count * place.columns;
  std::vector<std::byte> bytes(static_cast<size_t>(elements * width));
  PLIMSOLL_TRY(session.read(place.state, bytes, (place.row + first) * place.columns * width));
  Values values(static_cast<size_t>(elements));
  numerics::decode(format, bytes, values);
  return values;
}

Status write_rows(runtime::Session& session, const Place& place, int64_t first, const Values& values) {
  const numerics::Format format = state_format(place.dtype).encoding;
  const int64_t width = ir::bits(place.dtype) / 8;
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(width));
  numerics::encode(format, values, bytes);
  return session.write(place.state, bytes, (place.row + first) * place.columns * width);
}

Result<Values> read_all(const models::Model& model, const runtime::Session& session,
                        const std::string& view) {
  PLIMSOLL_ASSIGN(const Place place, place_of(model, session, view));
  return read_rows(session, place, 0, place.rows);
}

Status write_all(const models::Model& model, runtime::Session& session, const std::string& view,
                 const Values& values) {
  PLIMSOLL_ASSIGN(const Place place, place_of(model, session, view));
  return write_rows(session, place, 0, values);
}

/// Squares of the rows of W + s B A [outs]; W lies as [outs, in], or transposed.
Result<Values> norms(const runtime::Session& session, const Place& w, bool transposed, const Values& a,
                     const Values& b, double scale) {
  const auto outs = static_cast<size_t>(transposed ? w.columns : w.rows);
  const auto in = static_cast<size_t>(transposed ? w.rows : w.columns);
  const size_t rank = a.size() / in;
  const bool plain = std::all_of(b.begin(), b.end(), [](float v) { return v == 0; });
  std::vector<double> squares(outs, 0.0);
  for (int64_t r = 0; r < w.rows; ++r) {
    PLIMSOLL_ASSIGN(const Values row, read_rows(session, w, r, 1));
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

Values transpose(const Values& m, int64_t rows, int64_t columns) {
  Values t(m.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      t[static_cast<size_t>(c * rows + r)] = m[static_cast<size_t>(r * columns + c)];
  return t;
}

/// The names of what belongs to one adapted tensor.
struct PartNames {
  std::string weight, a;
  const models::Adapter::Part* part;
  bool transposed;
};

Status take_factors(const models::Model& model, runtime::Session& session, const PartNames& names) {
  PLIMSOLL_ASSIGN(const Place place, place_of(model, session, names.weight));
  PLIMSOLL_ASSIGN(Values w, read_rows(session, place, 0, place.rows));
  const models::Adapter::Part& part = *names.part;
  const int64_t outs = part.out, in = static_cast<int64_t>(w.size()) / outs;
  if (names.transposed) w = transpose(w, in, outs);
  const numerics::LowRankFactors f =
      low_rank_factors(w, {outs, in, part.rank, part.scale}, model.adapters()->factors);
  subtract_factors(f, {outs, in, part.rank, part.scale}, w);
  if (names.transposed) w = transpose(w, outs, in);
  PLIMSOLL_TRY(write_rows(session, place, 0, w));
  PLIMSOLL_TRY(write_all(model, session, names.a, f.right));
  return write_all(model, session, part.b, f.left);
}

Status set_magnitude(const models::Model& model, runtime::Session& session, const PartNames& names) {
  PLIMSOLL_ASSIGN(const Place w, place_of(model, session, names.weight));
  PLIMSOLL_ASSIGN(const Values a, read_all(model, session, names.a));
  PLIMSOLL_ASSIGN(const Values b, read_all(model, session, names.part->b));
  PLIMSOLL_ASSIGN(const Values magnitude, norms(session, w, names.transposed, a, b, names.part->scale));
  return write_all(model, session, names.part->magnitude, magnitude);
}

Status start_part(const models::Model& model, runtime::Session& session, const PartNames& names) {
  if (model.adapters()->factors != models::Factors::kNone && names.a.ends_with(".lora_A.weight"))
    PLIMSOLL_TRY(take_factors(model, session, names));
  return names.part->magnitude.empty() ? Status(Ok{}) : set_magnitude(model, session, names);
}

Status start_rows(const models::Model& model, runtime::Session& session) {
  const models::TokenRows& rows = model.adapters()->token_rows;
  if (rows.rows.empty()) return Ok{};
  const std::string table = rows.rows.substr(0, rows.rows.find(".token_adapter")) + ".weight";
  PLIMSOLL_ASSIGN(const Place from, place_of(model, session, table));
  PLIMSOLL_ASSIGN(const Place to, place_of(model, session, rows.rows));
  for (size_t i = 0; i < rows.tokens.size(); ++i) {
    PLIMSOLL_ASSIGN(const Values row, read_rows(session, from, rows.tokens[i], 1));
    PLIMSOLL_TRY(write_rows(session, to, static_cast<int64_t>(i), row));
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

int64_t start_adapters_bytes(const models::Model& model) {
  if (!model.adapters() || model.adapters()->factors == models::Factors::kNone) return 0;
  int64_t most = 0;
  for (const models::Parameter& p : model.parameters()) {
    const models::Adapter* adapter = p.is_adapter ? nullptr : model.adapter_of(p.name);
    for (size_t i = 0; adapter != nullptr && i < p.views.size(); ++i) {
      const models::Adapter::Part& part = adapter->parts[i];
      if (part.rank == 0) continue;
      const int64_t elements = p.views[i].shape.num_elements(), in = elements / part.out;
      const bool by_qr = model.adapters()->factors == models::Factors::kQr;
      most = std::max(most, (p.transposed ? 12 : 8) * elements + 8 * part.rank * (in + part.out) +
                                (by_qr ? 8 * part.rank * part.out
                                       : numerics::largest_singular_bytes(part.out, in, part.rank)));
    }
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

}  // namespace plimsoll::train
