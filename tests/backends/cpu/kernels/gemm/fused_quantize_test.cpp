// Quantising what another op computes, in bands: on each backend the bits of the two ops.
#include "ops/fused_quantize.h"

#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

/// Operands of the op that is fused, and its attributes. Matrices are of `rows`, columns behind them, in
/// dtype `stored`.
OpRun run_of(const ops::FusedQuantize& fused, const Shape& rows, int64_t cols, DType stored) {
  const std::string op(fused.computes);
  const bool is_norm = op.find("norm") != std::string::npos;
  const auto matrix = [&](unsigned seed, int64_t width) {
    std::vector<int64_t> dims(rows.dims().begin(), rows.dims().end());
    dims.push_back(width);
    const Tensor t = normal(Shape(dims), seed);
    return stored == DType::kF32 ? t : as(stored, t);
  };
  const Tensor x = matrix(1, cols), other = matrix(2, cols), weight = normal({cols}, 3),
               bias = normal({cols}, 4);
  std::vector<Tensor> in = {x};
  if (op.starts_with("add_")) in.push_back(other);
  if (op == "swiglu_grad") in = {matrix(2, cols / 2), x};
  if (op == "bias_gelu_grad") in = {other, x};
  if (is_norm) in.push_back(weight);
  if (op.find("layer_norm") != std::string::npos || op.find("gelu") != std::string::npos) in.push_back(bias);
  Attrs attrs;
  if (is_norm) attrs.set("eps", 1e-5);
  if (op.find("gelu") != std::string::npos) attrs.set("approximate", std::string("tanh"));
  return {op, in, attrs};
}

/// Both ops one after the other on the CPU.
std::vector<Tensor> one_by_one(const ops::FusedQuantize& fused, const OpRun& run, const Attrs& quantise,
                               const std::vector<Tensor>& scales) {
  std::vector<Tensor> results = run_cpu(run);
  std::vector<Tensor> operands = {results[fused.result]};
  operands.insert(operands.end(), scales.begin(), scales.end());
  results.erase(results.begin() + static_cast<int64_t>(fused.result));
  const std::vector<Tensor> copies = run_cpu({"quantize_operand", operands, quantise});
  results.insert(results.end(), copies.begin(), copies.end());
  return results;
}

void expect_bits_of_both(const ops::FusedQuantize& fused, const OpRun& run, const Attrs& quantise,
                         const std::vector<Tensor>& scales = {}) {
  OpRun joined{std::string(fused.op), run.inputs, run.attrs};
  for (const auto& [name, value] : quantise.entries()) joined.attrs.set(name, value);
  joined.inputs.insert(joined.inputs.end(), scales.begin(), scales.end());
  if (!on_card_alone())
    expect_same_bits(run_cpu(joined), one_by_one(fused, run, quantise, scales), std::string(fused.op));
  if (cuda::CudaDevice* card = cuda::fixtures::card()) {
    runs_on_card().push_back(joined.op);
    const std::vector<Tensor> alone = run_on_card(*card, run);
    std::vector<Tensor> operands = {alone[fused.result]};
    operands.insert(operands.end(), scales.begin(), scales.end());
    std::vector<Tensor> expected = alone;
    expected.erase(expected.begin() + static_cast<int64_t>(fused.result));
    const std::vector<Tensor> copies = run_on_card(*card, {"quantize_operand", operands, quantise});
    expected.insert(expected.end(), copies.begin(), copies.end());
    expect_same_bits(run_on_card(*card, joined), expected, std::string(fused.op) + " on a card");
  }
}

/// Several bands: 300 rows of 8,192 numbers on the CPU.
TEST(FusedQuantize, HasTheBitsOfBothOps) {
  for (const ops::FusedQuantize& fused : ops::fused_quantizes())
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{3, 34}, {300, 8192}})
      for (const char* scheme : {"fp8-block-1x128", "mxfp8"}) {
        if (rows > 3 && fused.computes != "swiglu" && fused.computes != "add_rms_norm") continue;
        const OpRun run = run_of(fused, {rows}, cols, DType::kF32);
        expect_bits_of_both(fused, run, {{"scheme", std::string(scheme)}, {"both", true}});
        if (rows == 3)
          expect_bits_of_both(fused, run, {{"scheme", std::string(scheme)}, {"transposed", true}});
      }
}

/// Bands of whole sequences, and of parts of one.
TEST(FusedQuantize, BlocksEndWithSequences) {
  for (const char* scheme : {"fp8-block-1x128", "mxfp8"}) {
    const Attrs both{{"scheme", std::string(scheme)}, {"both", true}, {"by_sequence", true}},
        turned{{"scheme", std::string(scheme)}, {"transposed", true}, {"by_sequence", true}};
    for (const ops::FusedQuantize& fused : ops::fused_quantizes()) {
      const OpRun run = run_of(fused, {3, 21}, 34, DType::kF32);
      expect_bits_of_both(fused, run, both);
      expect_bits_of_both(fused, run, turned);
    }
    const ops::FusedQuantize& fused = ops::fused_quantize("add_rms_norm_quantize");
    const Shape rows = both.str("scheme") == "mxfp8" ? Shape{3, 100} : Shape{2, 300};
    expect_bits_of_both(fused, run_of(fused, rows, 8192, DType::kF32), both);
  }
}

TEST(FusedQuantize, OfWhatIsStoredInBf16) {
  for (const ops::FusedQuantize& fused : ops::fused_quantizes()) {
    const OpRun run = run_of(fused, {130}, 96, DType::kBf16);
    expect_bits_of_both(fused, run, {{"scheme", std::string("mxfp8")}, {"precision", std::string("bf16")}});
  }
}

/// The scale comes from a state, and the largest magnitude from all bands.
TEST(FusedQuantize, TakesAScaleOfAState) {
  const ops::FusedQuantize& fused = ops::fused_quantize("swiglu_quantize");
  for (const char* scheme : {"e4m3", "e5m2"})
    expect_bits_of_both(fused, run_of(fused, {300}, 8192, DType::kF32),
                        {{"scheme", std::string(scheme)}, {"slot", int64_t{1}}}, {floats({3}, {1, 8, 2})});
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
