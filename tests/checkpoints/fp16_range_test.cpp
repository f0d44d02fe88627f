#include "checkpoints/fp16_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/session_testing.h"
#include "strategy/prepare.h"
#include "training/initialise.h"

namespace plimsoll::checkpoints {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A session of a small Llama with random weights, of which one may be set before they are checked.
class CheckedSession {
 public:
  explicit CheckedSession(const std::string& training,
                          strategy::Purpose purpose = strategy::Purpose::kEvaluate,
                          const std::string& config = kLlama) {
    auto parsed = settings::parse_run_config(
        "model:\n  config: " + config +
            "\n  init: random\ndata: {train: a.npy, eval: a.npy, sequence_length: 8}\n"
            "training: {global_batch_size: 1, max_steps: 1, " +
            training + "}\n",
        "run.yaml", {});
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message());
    config_ = std::move(*parsed);
    auto prepared = strategy::prepare(config_, device_.target(), {.purpose = purpose});
    EXPECT_TRUE(prepared) << (prepared ? "" : prepared.error().message());
    prepared_.emplace(std::move(*prepared));
    auto session = runtime::Session::create(device_, std::move(prepared_->programs.session));
    EXPECT_TRUE(session) << (session ? "" : session.error().message());
    session_ = std::move(*session);
    EXPECT_TRUE(training::initialise(config_, *prepared_, *session_, /*pretrained=*/false, 1));
  }

  /// "" where it fits, else the error.
  std::string with(const std::string& weight, float value) {
    const auto last = static_cast<size_t>(session_->type(weight).num_elements() - 1);
    const auto bits = std::bit_cast<uint32_t>(value);
    if (session_->plan().find_state(weight)->decl.type.dtype == ir::DType::kF32)
      session_testing::on_cpu<float>(*session_, weight)[last] = value;
    else
      session_testing::on_cpu<uint16_t>(*session_, weight)[last] = static_cast<uint16_t>(bits >> 16);
    const Status fits = check_fp16_range(config_, *prepared_->model, *session_, 2);
    if (fits) return "";
    EXPECT_EQ(fits.error().code, ErrorCode::kBadData);
    return fits.error().what + "\n" + fits.error().hint;
  }

  static constexpr const char* kLlama =
      "{model_type: llama, vocab_size: 32, hidden_size: 16, intermediate_size: 24, num_hidden_layers: 1, "
      "num_attention_heads: 2, num_key_value_heads: 1, max_position_embeddings: 16, rms_norm_eps: 1.0e-5, "
      "tie_word_embeddings: false}";

 private:
  cpu::CpuDevice device_{1};
  settings::RunConfig config_;
  std::optional<strategy::Prepared> prepared_;
  std::unique_ptr<runtime::Session> session_;
};

constexpr const char* kDown = "model.layers.0.mlp.down_proj.weight";

/// Ties go to even, which is infinity's side: 65,520 is the first that is lost.
TEST(Fp16Range, EndsHalfwayToTheNextNumber) {
  const float below = std::nextafter(65520.0F, 0.0F), infinite = std::numeric_limits<float>::infinity();
  for (const float fine : {0.0F, -0.0F, 1e-40F, 65504.0F, below, -below, infinite, -infinite,
                           std::numeric_limits<float>::quiet_NaN()})
    EXPECT_EQ(first_beyond_fp16({&fine, 1}), std::nullopt) << fine;
  for (const float lost : {65520.0F, -65520.0F, 1e30F, std::numeric_limits<float>::lowest()})
    EXPECT_EQ(first_beyond_fp16({&lost, 1}), 0U) << lost;
}

TEST(Fp16Range, FindsTheFirst) {
  for (const size_t at : {0U, 4095U, 4096U, 9999U}) {
    std::vector<float> values(10'000, 1.0F);
    values[at] = 1e5F;
    values.back() = -1e5F;
    EXPECT_EQ(first_beyond_fp16(values), at);
  }
  EXPECT_EQ(first_beyond_fp16({}), std::nullopt);
}

TEST(Fp16Range, OfBf16IsItsTwoToTheSixteenth) {
  const std::vector<uint16_t> fine = {0, 0x8000, 0x477F, 0xC77F, 0x7F80, 0xFF80, 0x7FC0, 0xFFFF};
  EXPECT_EQ(first_bf16_beyond_fp16(fine), std::nullopt);
  for (const uint16_t lost : {0x4780, 0xC780, 0x7F7F, 0xFF7F})
    EXPECT_EQ(first_bf16_beyond_fp16({&lost, 1}), 0U) << lost;
}

TEST(Fp16Range, CoversWeightsInBf16ThatAreMultipliedInFp16) {
  const std::string training = "precision: bf16, state: {weights: bf16}, precision_overrides: {mlp: fp16}";
  for (const strategy::Purpose purpose : {strategy::Purpose::kEvaluate, strategy::Purpose::kTrain}) {
    CheckedSession session(training, purpose);
    EXPECT_EQ(session.with(kDown, 65280.0F), "");
    EXPECT_EQ(session.with("model.layers.0.self_attn.o_proj.weight", 70144.0F), "");  // bf16 holds it
    EXPECT_THAT(session.with(kDown, -70144.0F), HasSubstr("down_proj.weight holds -70144"));
  }
}

TEST(Fp16Range, CoversTheRowsThatBeginAResidualStreamInFp16) {
  constexpr const char* kTable = "model.embed_tokens.weight";
  EXPECT_EQ(CheckedSession("precision: fp16").with(kTable, 70000.0F), "");
  for (const strategy::Purpose purpose : {strategy::Purpose::kEvaluate, strategy::Purpose::kTrain})
    EXPECT_THAT(CheckedSession("precision: fp16, residual_in_fp32: false", purpose).with(kTable, 70000.0F),
                AllOf(HasSubstr("embed_tokens.weight holds 70000"), HasSubstr("residual_in_fp32=true")));
  const std::string gpt2 =
      "{model_type: gpt2, vocab_size: 32, n_embd: 16, n_layer: 1, n_head: 2, n_positions: 16}";
  constexpr const char* kPlaces = "transformer.wpe.weight";
  EXPECT_EQ(CheckedSession("precision: fp16", strategy::Purpose::kEvaluate, gpt2).with(kPlaces, 70000.0F),
            "");
  EXPECT_THAT(CheckedSession("precision: fp16, residual_in_fp32: false", strategy::Purpose::kEvaluate, gpt2)
                  .with(kPlaces, 70000.0F),
              HasSubstr("wpe.weight holds 70000"));
}

TEST(Fp16Range, TheHintIsOfWhatFp16ComesFrom) {
  EXPECT_THAT(CheckedSession("precision: fp16").with(kDown, 70000.0F),
              HasSubstr("set training.precision=bf16"));
  const std::string of_override =
      CheckedSession("precision: fp32, precision_overrides: {mlp: fp16}").with(kDown, 70000.0F);
  EXPECT_THAT(of_override, HasSubstr("drop the overrides to fp16"));
  EXPECT_THAT(of_override, Not(HasSubstr("set training.precision")));
}

}  // namespace
}  // namespace plimsoll::checkpoints
