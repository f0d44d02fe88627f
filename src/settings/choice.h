// Settings that are one of some words, held as enums: a word is read once, and nothing behind the run file
// compares texts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::settings {

/// The words of an enum, by its values; a specialization stands beside each enum.
template <typename E>
inline constexpr int kWords = 0;

/// A choice as settings see it: a place in its words.
struct Choice {
  uint8_t index = 0;
  bool operator==(const Choice&) const = default;
};

/// A field of a RunConfig that holds an E.
template <typename E>
struct OneOf : Choice {
  using Enum = E;
  constexpr OneOf(E value) : Choice{static_cast<uint8_t>(value)} {}
  constexpr operator E() const { return static_cast<E>(index); }
};

template <typename E>
constexpr std::string_view word(E value) {
  return kWords<E>[static_cast<size_t>(value)];
}
template <typename E>
constexpr std::string_view word(OneOf<E> value) {
  return word(static_cast<E>(value));
}

/// The value of a word; nothing where there is none.
template <typename E>
constexpr std::optional<E> find_word(std::string_view text) {
  for (size_t i = 0; i < kWords<E>.size(); ++i)
    if (kWords<E>[i] == text) return static_cast<E>(i);
  return std::nullopt;
}

/// All words of a field's enum.
template <typename E>
std::vector<std::string> words_of(OneOf<E>) {
  return {kWords<E>.begin(), kWords<E>.end()};
}

// ---- the choices of a run

/// distributed.mode: what ranks hold of the training state.
enum class RankMode : uint8_t { kAuto, kDdp, kZero1, kZero2, kZero3 };
template <>
inline constexpr std::array<std::string_view, 5> kWords<RankMode> = {"auto", "ddp", "zero1", "zero2",
                                                                     "zero3"};

/// training.precision: what products are computed in.
enum class Precision : uint8_t { kFp32, kTf32, kBf16, kFp16, kFp8 };
template <>
inline constexpr std::array<std::string_view, 5> kWords<Precision> = {"fp32", "tf32", "bf16", "fp16", "fp8"};

/// What a part of the training state is kept in; state_formats.h has their dtypes.
enum class StateWord : uint8_t { kFp32, kBf16, kFp16 };
template <>
inline constexpr std::array<std::string_view, 3> kWords<StateWord> = {"fp32", "bf16", "fp16"};

/// training.state.moments: as they are, or as codes of 8 bits with scales (optimizers/optimizer.h).
enum class MomentsWord : uint8_t { kFp32, kBf16, kFp8Lm, kCoat };
template <>
inline constexpr std::array<std::string_view, 4> kWords<MomentsWord> = {"fp32", "bf16", "fp8_lm", "coat"};

enum class UpdateRounding : uint8_t { kAuto, kNearest, kStochastic };
template <>
inline constexpr std::array<std::string_view, 3> kWords<UpdateRounding> = {"auto", "nearest", "stochastic"};

enum class FirstWeights : uint8_t { kAuto, kPretrained, kRandom };
template <>
inline constexpr std::array<std::string_view, 3> kWords<FirstWeights> = {"auto", "pretrained", "random"};

/// model.norm_statistics; auto: frozen where a norm's parameters are.
enum class NormStatisticsWord : uint8_t { kAuto, kBatch, kFrozen, kSynchronised };
template <>
inline constexpr std::array<std::string_view, 4> kWords<NormStatisticsWord> = {"auto", "batch", "frozen",
                                                                               "synchronised"};

enum class DecayScope : uint8_t { kMatrices, kAll };
template <>
inline constexpr std::array<std::string_view, 2> kWords<DecayScope> = {"matrices", "all"};

/// The shape of a warm-up or a decay of schedule warmup_stable_decay.
enum class Ramp : uint8_t { kLinear, kCosine, kOneMinusSqrt };
template <>
inline constexpr std::array<std::string_view, 3> kWords<Ramp> = {"linear", "cosine", "1-sqrt"};

/// memory.recompute; the last three take an argument, which segments may do without.
enum class RecomputeMode : uint8_t {
  kAuto,
  kNone,
  kFull,
  kAttention,
  kMlp,
  kSelective,
  kEvery,
  kSegments,
  kLayers
};
template <>
inline constexpr std::array<std::string_view, 9> kWords<RecomputeMode> = {
    "auto", "none", "full", "attention", "mlp", "selective", "every", "segments", "layers"};

/// memory.optimizer_in_backward.
enum class OptimizerInBackward : uint8_t { kAuto, kTrue, kFalse };
template <>
inline constexpr std::array<std::string_view, 3> kWords<OptimizerInBackward> = {"auto", "true", "false"};

/// memory.update_on_host.
enum class UpdateOnHost : uint8_t { kAuto, kTrue, kFalse };
template <>
inline constexpr std::array<std::string_view, 3> kWords<UpdateOnHost> = {"auto", "true", "false"};

/// paths: what a run file's relative paths start from.
enum class PathBase : uint8_t { kWorkingFolder, kRunFile };
template <>
inline constexpr std::array<std::string_view, 2> kWords<PathBase> = {"working_folder", "run_file"};

/// debug.plan: one arena, or a buffer for each storage.
enum class PlanLayout : uint8_t { kArena, kSeparate };
template <>
inline constexpr std::array<std::string_view, 2> kWords<PlanLayout> = {"arena", "separate"};

}  // namespace plimsoll::settings
