// The definitions of adamw_fp8_lm and adamw_coat, in f32 as their kernels are: what lies between two codes
// must lie on the same side here and there.
#include <algorithm>
#include <cstddef>

#include "numerics/convert.h"
#include "ops/moment_codes.h"
#include "ops/tensor_rules.h"

namespace plimsoll::ops {
namespace {

/// Where a moment's states stand among the rule's.
struct MomentStates {
  MomentCode code;
  size_t codes, absmax;
  size_t power = 0;  ///< 0: it has none
};

MomentScale scale_of(const TensorUpdate& u, const MomentStates& s, size_t block) {
  MomentScale scale{.absmax = static_cast<float>(u.states[s.absmax][block])};
  if (s.power > 0) scale.power = static_cast<float>(u.states[s.power][block]);
  return scale;
}

/// fp16 numbers are held as numbers, codes of a byte as the byte's.
std::vector<float> read(const TensorUpdate& u, const MomentStates& s, size_t first, size_t n, size_t block) {
  const MomentScale scale = scale_of(u, s, block);
  std::vector<std::byte> codes(n * static_cast<size_t>(moment_code_bytes(s.code)));
  for (size_t i = 0; i < n; ++i) {
    const double stored = u.states[s.codes][first + i];
    if (s.code != MomentCode::kFp16) {
      codes[i] = static_cast<std::byte>(stored);
      continue;
    }
    const auto number = static_cast<float>(stored);
    numerics::encode(numerics::Format::kFp16, {&number, 1}, std::span(codes).subspan(2 * i, 2));
  }
  std::vector<float> values(n);
  decode_moments(s.code, scale, codes, values);
  return values;
}

void write(TensorUpdate& u, const MomentStates& s, size_t first, const std::vector<float>& values,
           size_t block) {
  std::vector<std::byte> codes(values.size() * static_cast<size_t>(moment_code_bytes(s.code)));
  const MomentScale scale = encode_moments(s.code, values, codes);
  u.states[s.absmax][block] = static_cast<double>(scale.absmax);
  if (s.power > 0) u.states[s.power][block] = static_cast<double>(scale.power);
  for (size_t i = 0; i < values.size(); ++i) {
    double& to = u.states[s.codes][first + i];
    if (s.code != MomentCode::kFp16) {
      to = std::to_integer<int>(codes[i]);
      continue;
    }
    float number = 0;
    numerics::decode(numerics::Format::kFp16, std::span(codes).subspan(2 * i, 2), {&number, 1});
    to = static_cast<double>(number);
  }
}

void apply(TensorUpdate& u, const MomentStates& first_moment, const MomentStates& second_moment,
           int64_t block_elements) {
  std::vector<float> group;
  for (int64_t f = 0; f < kAdamwFields; ++f) group.push_back(static_cast<float>(u.group[f]));
  const auto width = static_cast<size_t>(block_elements);
  for (size_t first = 0; first < u.param.size(); first += width) {
    const size_t n = std::min(width, u.param.size() - first), block = first / width;
    std::vector<float> m = read(u, first_moment, first, n, block),
                       v = read(u, second_moment, first, n, block);
    std::vector<float> step(n);
    for (size_t i = 0; i < n; ++i) step[i] = static_cast<float>(u.gradient[first + i]);
    adamw_block(group.data(), step, m, v);
    for (size_t i = 0; i < n; ++i)
      u.param[first + i] = static_cast<double>(
          static_cast<float>(u.param[first + i]) * group[static_cast<size_t>(kAdamwDecay)] - step[i]);
    write(u, first_moment, first, m, block);
    write(u, second_moment, first, v, block);
  }
}

void apply_fp8_lm(TensorUpdate& u) {
  apply(u, {MomentCode::kE4m3, 0, 2}, {MomentCode::kFp16, 1, 3}, kCodeBlock);
}
void apply_coat(TensorUpdate& u) {
  apply(u, {MomentCode::kExpanded, 0, 2, 4}, {MomentCode::kExpanded, 1, 3, 5}, kCoatBlock);
}

template <int64_t kBlock>
ir::Shape blocks(const RuledTensor& tensor) {
  return {ceil_div(tensor.shape.num_elements(), kBlock)};
}
template <int kFlops>
double flops(const RuledTensor& tensor) {
  return kFlops * static_cast<double>(tensor.shape.num_elements());
}

}  // namespace

std::vector<TensorRule> adamw_fp8_rules() {
  using enum ir::DType;
  return {{.name = "adamw_fp8_lm",
           .summary = "AdamW with moments in E4M3 and fp16",
           .states = {{"m", nullptr, kU8},
                      {"v", nullptr, kF16},
                      {"m_absmax", blocks<kCodeBlock>, kF32},
                      {"v_absmax", blocks<kCodeBlock>, kF32}},
           .num_fields = kAdamwFields,
           .flops = flops<30>,
           .apply = apply_fp8_lm,
           .block_elements = kCodeBlock},
          {.name = "adamw_coat",
           .summary = "AdamW with moments in E4M3 whose range is expanded",
           .states = {{"m", nullptr, kU8},
                      {"v", nullptr, kU8},
                      {"m_absmax", blocks<kCoatBlock>, kF32},
                      {"v_absmax", blocks<kCoatBlock>, kF32},
                      {"m_power", blocks<kCoatBlock>, kF32},
                      {"v_power", blocks<kCoatBlock>, kF32}},
           .num_fields = kAdamwFields,
           .flops = flops<120>,  // four powers
           .apply = apply_coat,
           .block_elements = kCoatBlock}};
}

}  // namespace plimsoll::ops
