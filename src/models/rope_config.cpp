// Rotary settings. Defaults and precedence are transformers' (modeling_rope_utils): what stands in the
// settings' own object comes before the config's top level, except original_max_position_embeddings.
#include "models/rope_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace plimsoll::models {
namespace {

constexpr io::NumberRange kThetaRange = {1.0, 1e12};
constexpr io::NumberRange kFactorRange = {1.0, 1e6};
constexpr io::NumberRange kBetaRange = {0.0, 1e6};
constexpr io::NumberRange kScaleRange = {0.0, 1e6};
constexpr std::string_view kSupported = "one of default, linear, dynamic, llama3, yarn";

/// The settings and what of the whole config they refer to.
struct Source {
  const io::ConfigJson& config;
  const io::ConfigJson& rope;
  int64_t max_positions;
};

/// A field at the top level goes before the settings' own; without either it is the model's positions.
Result<int64_t> original_positions(const Source& s) {
  constexpr std::string_view kField = "original_max_position_embeddings";
  const io::ConfigJson& where = s.config.has(kField) ? s.config : s.rope;
  return where.integer(kField, kPositionsRange, s.max_positions);
}

Status read_llama3(const Source& s, RopeConfig& r) {
  PLIMSOLL_ASSIGN(r.low_freq_factor, s.rope.number("low_freq_factor", {1e-6, 1e6}));
  PLIMSOLL_ASSIGN(r.high_freq_factor, s.rope.number("high_freq_factor", {1e-6, 1e6}));
  if (!(r.high_freq_factor > r.low_freq_factor))
    return s.rope.error("high_freq_factor",
                        fmt::format("a number above low_freq_factor ({})", r.low_freq_factor));
  PLIMSOLL_ASSIGN(r.original_max_position_embeddings, original_positions(s));
  return Ok{};
}

/// The softmax's temperature for a context that is `scale` times as long, as a factor of cosines and sines.
double magnitude(double scale, double mscale) {
  return scale <= 1 ? 1.0 : 0.1 * mscale * std::log(scale) + 1.0;
}

Status read_yarn(const Source& s, RopeConfig& r) {
  PLIMSOLL_ASSIGN(r.original_max_position_embeddings, original_positions(s));
  // As in transformers: null is the ratio of the positions, nothing at all is a mistake.
  if (s.rope.fields().find("factor") == nullptr)
    return s.rope.error("factor",
                        "how many times as long the context became, or null for the ratio of the positions");
  const double ratio =
      static_cast<double>(s.max_positions) / static_cast<double>(r.original_max_position_embeddings);
  PLIMSOLL_ASSIGN(r.factor, s.rope.number("factor", kFactorRange, std::max(ratio, 1.0)));
  if (!(r.theta > 1)) return s.rope.error("rope_theta", "a number above 1 where the type is yarn");
  PLIMSOLL_ASSIGN(const double mscale, s.rope.number("mscale", kScaleRange, 0.0));
  PLIMSOLL_ASSIGN(const double mscale_all_dim, s.rope.number("mscale_all_dim", kScaleRange, 0.0));
  const double inferred = mscale != 0 && mscale_all_dim != 0
                              ? magnitude(r.factor, mscale) / magnitude(r.factor, mscale_all_dim)
                              : magnitude(r.factor, 1.0);
  PLIMSOLL_ASSIGN(r.attention_factor, s.rope.number("attention_factor", kScaleRange, inferred));
  PLIMSOLL_ASSIGN(r.beta_fast, s.rope.number("beta_fast", kBetaRange, 0.0));
  PLIMSOLL_ASSIGN(r.beta_slow, s.rope.number("beta_slow", kBetaRange, 0.0));
  if (r.beta_fast == 0) r.beta_fast = 32.0;  // 0 stands for the default there too
  if (r.beta_slow == 0) r.beta_slow = 1.0;
  PLIMSOLL_ASSIGN(r.truncate, s.rope.boolean("truncate", true));
  return Ok{};
}

Result<RopeConfig> read_rope(const Source& s, std::string_view type, double theta) {
  using enum RopeConfig::Kind;
  RopeConfig r;
  PLIMSOLL_ASSIGN(r.theta, s.rope.number("rope_theta", kThetaRange, theta));
  PLIMSOLL_TRY(
      s.rope.require("partial_rotary_factor", io::Tree::of(int64_t{1}), "partial rotation is not supported"));
  PLIMSOLL_TRY(s.rope.require_absent({"mrope_section"}));
  if (type == "default") return r;
  if (type == "yarn") {
    r.kind = kYarn;
    PLIMSOLL_TRY(read_yarn(s, r));
    return r;
  }
  PLIMSOLL_ASSIGN(r.factor, s.rope.number("factor", kFactorRange));
  r.kind = type == "linear" ? kLinear : type == "dynamic" ? kDynamic : kLlama3;
  if (r.kind == kDynamic) r.original_max_position_embeddings = s.max_positions;
  if (r.kind == kLlama3) PLIMSOLL_TRY(read_llama3(s, r));
  return r;
}

Result<std::string> read_type(const io::ConfigJson& rope) {
  const std::string_view field = rope.has("rope_type") ? "rope_type" : "type";
  PLIMSOLL_ASSIGN(const std::string type, rope.string(field, "default"));
  if (!rope.has(field) && rope.has("factor"))
    return rope.error("rope_type", "the kind of scaling that factor belongs to, such as linear");
  for (const std::string_view known : {"default", "linear", "dynamic", "llama3", "yarn"})
    if (type == known) return type;
  return rope.error(field, std::string(kSupported) + ": other rope types are not supported");
}

/// Where both spellings stand they must say the same.
Status check_old_spelling(const io::ConfigJson& config, const io::ConfigJson& old, const std::string& type,
                          const RopeConfig& result) {
  PLIMSOLL_ASSIGN(const std::string other,
                  old.string(old.has("rope_type") ? "rope_type" : "type", "default"));
  PLIMSOLL_ASSIGN(const double factor, old.number("factor", kFactorRange, result.factor));
  if (other != type || factor != result.factor)
    return config.error("rope_scaling", "the same as rope_parameters; they contradict");
  return Ok{};
}

std::vector<float> positional_powers(double theta, int64_t head_dim) {
  std::vector<float> powers(static_cast<size_t>(head_dim / 2));
  for (size_t i = 0; i < powers.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    powers[i] = static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
  }
  return powers;
}

/// Long wavelengths are stretched by the factor, short ones stay, with a ramp between.
float llama3_frequency(const RopeConfig& r, float frequency) {
  const auto scale = static_cast<float>(r.factor);
  const auto low = static_cast<float>(r.low_freq_factor), high = static_cast<float>(r.high_freq_factor);
  const auto old_length = static_cast<float>(r.original_max_position_embeddings);
  const float wavelength = 2.0F * std::numbers::pi_v<float> / frequency;
  if (wavelength > old_length / low) return frequency / scale;
  if (wavelength < old_length / high) return frequency;
  const float smooth = (old_length / wavelength - low) / (high - low);
  return (1.0F - smooth) * frequency / scale + smooth * frequency;
}

/// The dimension whose wavelength turns `rotations` times within the original positions.
double correction_dimension(const RopeConfig& r, double rotations, int64_t head_dim) {
  const auto length = static_cast<double>(r.original_max_position_embeddings);
  return static_cast<double>(head_dim) * std::log(length / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(r.theta));
}

std::vector<float> yarn_frequencies(const RopeConfig& r, int64_t head_dim) {
  double low = correction_dimension(r, r.beta_fast, head_dim);
  double high = correction_dimension(r, r.beta_slow, head_dim);
  if (r.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(head_dim - 1));
  if (low == high) high += 0.001;  // a step instead of a ramp
  std::vector<float> result = positional_powers(r.theta, head_dim);
  for (size_t i = 0; i < result.size(); ++i) {
    const float extrapolated = 1.0F / result[i];
    const float interpolated = 1.0F / (static_cast<float>(r.factor) * result[i]);
    const float ramp = std::clamp(
        (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low), 0.0F, 1.0F);
    const float keep = 1.0F - ramp;
    result[i] = interpolated * (1.0F - keep) + extrapolated * keep;
  }
  return result;
}

/// The base up to the original positions: the scaling's formula at its starting point, where it is 1 but for
/// rounding.
double dynamic_theta(const RopeConfig& r, int64_t head_dim) {
  if (head_dim <= 2) return r.theta;
  const auto length = static_cast<double>(r.original_max_position_embeddings);
  const double stretch = r.factor * length / length - (r.factor - 1);
  return r.theta * std::pow(stretch, static_cast<double>(head_dim) / static_cast<double>(head_dim - 2));
}

}  // namespace

std::vector<float> RopeConfig::inverse_frequencies(int64_t head_dim) const {
  if (kind == Kind::kYarn) return yarn_frequencies(*this, head_dim);
  std::vector<float> result =
      positional_powers(kind == Kind::kDynamic ? dynamic_theta(*this, head_dim) : theta, head_dim);
  for (float& power : result) {
    const float frequency = 1.0F / power;
    power = kind == Kind::kLinear   ? frequency / static_cast<float>(factor)
            : kind == Kind::kLlama3 ? llama3_frequency(*this, frequency)
                                    : frequency;
  }
  return result;
}

Result<ParsedRope> parse_rope(const io::ConfigJson& config, int64_t max_position_embeddings,
                              double otherwise) {
  PLIMSOLL_TRY(
      config.require("partial_rotary_factor", io::Tree::of(int64_t{1}), "partial rotation is not supported"));
  PLIMSOLL_ASSIGN(const double theta, config.number("rope_theta", kThetaRange, otherwise));
  PLIMSOLL_ASSIGN(const auto old_spelling, config.object("rope_scaling"));
  PLIMSOLL_ASSIGN(const auto new_spelling, config.object("rope_parameters"));
  const io::ConfigJson rope = new_spelling   ? *new_spelling
                              : old_spelling ? *old_spelling
                                             : io::ConfigJson(io::Tree::map(), config.source());
  for (const auto& [name, value] : rope.fields().members)
    if (value.kind == io::Tree::Kind::kMap)
      return rope.error(name, "a number or a word: rotary settings for each type of layer are not supported");
  PLIMSOLL_ASSIGN(const std::string type, read_type(rope));
  PLIMSOLL_ASSIGN(const RopeConfig result, read_rope({config, rope, max_position_embeddings}, type, theta));
  if (config.has("rope_theta") && result.theta != theta)
    return config.error("rope_theta", fmt::format("{}, as in rope_parameters", result.theta));
  if (new_spelling && old_spelling) PLIMSOLL_TRY(check_old_spelling(config, *old_spelling, type, result));
  config.ignore({"original_max_position_embeddings"});
  rope.ignore({"type", "rope_type"});
  ParsedRope parsed{result, {}};
  for (const std::string& field : rope.unread_fields())
    parsed.unknown_fields.push_back((new_spelling ? "rope_parameters." : "rope_scaling.") + field);
  return parsed;
}

}  // namespace plimsoll::models
