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
#include "ops/shard.h"
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

/// Of a matrix that stays whole, once it is loaded; of one in few bits quantized_start.h does, while it is.
/// LoftQ has nothing to make up for there.
bool takes_factors(const models::Adapters& adapters, ir::DType dtype) {
  return !ir::is_block(dtype) &&
         (adapters.factors == models::Factors::kSvd || adapters.factors == models::Factors::kQr);
}

/// The table that rows of tokens stand in for.
std::string table_of(const models::TokenRows& rows) {
  return rows.rows.substr(0, rows.rows.find(".token_adapter")) + ".weight";
}

class Starter {
 public:
  Starter(const models::Model& model, runtime::Session& session, const AdapterStart& how)
      : model_(model), session_(session), how_(how) {}

  Status start_part(const PartNames& names) {
    PLIMSOLL_ASSIGN(const ParameterPlace place, place_of(model_, session_, names.weight));
    if (takes_factors(*model_.adapters(), place.type.dtype)) PLIMSOLL_TRY(take_factors(names));
    return names.part->magnitude.empty() || how_.base_only ? Status(Ok{}) : set_magnitude(names);
  }

  Status start_rows() {
    const models::TokenRows& rows = model_.adapters()->token_rows;
    if (rows.rows.empty() || how_.base_only) return Ok{};
    PLIMSOLL_ASSIGN(ParameterPlace place, place_of(model_, session_, table_of(rows)));
    PLIMSOLL_ASSIGN(const ParameterRows from, ParameterRows::open(session_, std::move(place), how_.ranks));
    PLIMSOLL_ASSIGN(const ParameterPlace to, place_of(model_, session_, rows.rows));
    for (size_t i = 0; i < rows.tokens.size(); ++i) {
      PLIMSOLL_ASSIGN(const Values row, from.read(rows.tokens[i], 1));
      PLIMSOLL_TRY(write_parameter_rows(session_, to, static_cast<int64_t>(i), row));
    }
    return Ok{};
  }

 private:
  [[nodiscard]] Result<Values> read(const std::string& view) const {
    return read_parameter_rows(model_, session_, view, how_.ranks);
  }
  Status write(const std::string& view, const Values& values) {
    return write_parameter_rows(model_, session_, view, values);
  }

  Status take_factors(const PartNames& names) {
    PLIMSOLL_ASSIGN(Values w, read(names.weight));
    const models::Adapter::Part& part = *names.part;
    const int64_t outs = part.out, in = static_cast<int64_t>(w.size()) / outs;
    if (names.transposed) w = transpose(w, static_cast<size_t>(in), static_cast<size_t>(outs));
    const numerics::LowRankFactors f =
        low_rank_factors(w, {outs, in, part.rank, part.scale}, model_.adapters()->factors);
    subtract_factors(f, {outs, in, part.rank, part.scale}, w);
    if (names.transposed) w = transpose(w, static_cast<size_t>(outs), static_cast<size_t>(in));
    PLIMSOLL_TRY(write(names.weight, w));
    if (how_.base_only) return Ok{};
    PLIMSOLL_TRY(write(names.a, f.right));
    return write(part.b, f.left);
  }

  Status set_magnitude(const PartNames& names) {
    PLIMSOLL_ASSIGN(ParameterPlace place, place_of(model_, session_, names.weight));
    PLIMSOLL_ASSIGN(const ParameterRows w, ParameterRows::open(session_, std::move(place), how_.ranks));
    PLIMSOLL_ASSIGN(const Values a, read(names.a));
    PLIMSOLL_ASSIGN(const Values b, read(names.part->b));
    PLIMSOLL_ASSIGN(const Values magnitude, norms(w, names.transposed, a, b, names.part->scale));
    return write(names.part->magnitude, magnitude);
  }

  const models::Model& model_;
  runtime::Session& session_;
  const AdapterStart how_;
};

/// Of ranks that share the parameters: the largest storage that one gathers, with the piece of it, and beside
/// that what it gathers of the adapter.
int64_t gathered_bytes(const models::Model& model, int64_t ranks) {
  const models::TokenRows& rows = model.adapters()->token_rows;
  int64_t most = 0;
  for (const models::Parameter& p : model.parameters())
    for (const models::ParameterView& view : p.views) {
      const models::Adapter::Part* part = adapter_part(model, p, view);
      const bool is_table = !rows.rows.empty() && view.name == table_of(rows);
      const bool is_read =
          part != nullptr && (takes_factors(*model.adapters(), p.dtype) || !part->magnitude.empty());
      if (!is_read && !is_table) continue;
      const ir::TensorType whole{p.dtype, p.shape};
      const int64_t in = part == nullptr ? 0 : view.shape.num_elements() / part->out;
      most = std::max(most, whole.bytes().count + ops::piece_type(whole, ranks).bytes().count +
                                (part == nullptr ? 0 : 16 * part->rank * (in + part->out)));
    }
  return most;
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

int64_t start_adapters_bytes(const models::Model& model, int64_t sharing_ranks) {
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
  return most + (sharing_ranks > 1 ? gathered_bytes(model, sharing_ranks) : 0);
}

Status start_adapters(const models::Model& model, runtime::Session& session, const AdapterStart& how) {
  if (!model.adapters()) return Ok{};
  Starter starter(model, session, how);
  for (const models::Adapter& adapter : model.adapters()->linears)
    for (const models::Parameter& p : model.parameters()) {
      if (p.name != adapter.weight && p.part_of != adapter.weight) continue;
      for (const models::ParameterView& view : p.views) {
        const std::string module = view.name.substr(0, view.name.rfind('.'));
        for (const models::Adapter::Part& part : adapter.parts)
          if (part.rank > 0 && part.b == module + ".lora_B.weight")
            PLIMSOLL_TRY(starter.start_part({view.name, module + ".lora_A.weight", &part, p.transposed}));
      }
    }
  return starter.start_rows();
}

}  // namespace plimsoll::checkpoints
