#include "planner/known_profiles.h"

#include <algorithm>
#include <cctype>

#include "io/suggest.h"

namespace plimsoll::planner {
namespace {

/// Dense rates in TFLOP/s: plain fp32, then the matrix units'; `short_` where bf16 has units, else that of
/// fp32. Bytes of memory are the nominal ones.
struct Card {
  std::string_view name;
  double memory_gib, memory_gb_per_second;
  double f32, tf32, bf16, f16;
  double link_gb_per_second;  ///< in each direction
  double cache_mib;
  std::string_view source;
};

constexpr Card kCards[] = {
    {"t4", 16, 320, 8.1, 8.1, 8.1, 65, 15.75, 4,
     "NVIDIA T4 Tensor Core GPU datasheet; no bf16, no tf32 units"},
    {"l4", 24, 300, 30.3, 60, 121, 121, 32, 48, "NVIDIA L4 Tensor Core GPU datasheet, half the sparse rates"},
    {"a10g", 24, 600, 31.5, 35, 70, 70, 32, 6, "NVIDIA A10G Tensor Core GPU datasheet"},
    {"a100-40", 40, 1555, 19.5, 156, 312, 312, 32, 40, "NVIDIA A100 Tensor Core GPU datasheet, 40GB"},
    {"a100-80", 80, 2039, 19.5, 156, 312, 312, 32, 40, "NVIDIA A100 Tensor Core GPU datasheet, 80GB SXM"},
    {"h100", 80, 3350, 67, 494.5, 989.5, 989.5, 64, 50,
     "NVIDIA H100 Tensor Core GPU datasheet, SXM, half the sparse rates"},
    {"h200", 141, 4800, 67, 494.5, 989.5, 989.5, 64, 50,
     "NVIDIA H200 Tensor Core GPU datasheet, SXM, half the sparse rates"},
    {"b200", 180, 8000, 75, 1125, 2250, 2250, 64, 126,
     "NVIDIA HGX B200 datasheet, an eighth of the board, half the sparse rates"},
    {"rtx3090", 24, 936, 35.6, 35.6, 71, 71, 32, 6,
     "NVIDIA Ampere GA102 GPU architecture whitepaper, fp32 accumulation"},
    {"rtx4090", 24, 1008, 82.6, 82.6, 165.2, 165.2, 32, 72,
     "NVIDIA Ada GPU architecture whitepaper, fp32 accumulation"},
    {"rtx5090", 32, 1792, 104.8, 104.8, 209.5, 209.5, 64, 96,
     "NVIDIA RTX Blackwell GPU architecture whitepaper, fp32 accumulation"},
    {"rtx-pro-6000", 96, 1792, 125, 251.9, 503.8, 503.8, 64, 128,
     "NVIDIA RTX PRO Blackwell GPU architecture whitepaper, workstation edition"},
    {"mi300x", 192, 5300, 163.4, 653.7, 1307.4, 1307.4, 64, 256, "AMD Instinct MI300X data sheet"},
};

/// What drivers keep and error correction takes: cards offer their plans this part of the nominal memory.
constexpr double kUsablePart = 15.0 / 16;
constexpr double kContextBytes = 768.0 * (1 << 20);
/// No data sheet has these; taken for all cards alike.
constexpr double kLaunchSeconds = 4e-6, kHalfExtent = 128, kAttentionPart = 0.5, kCacheFactor = 3;

MachineProfile profile_of(const Card& card) {
  MachineProfile p;
  p.name = card.name;
  p.source = card.source;
  p.rates = "data sheet";
  p.product_flops = {card.f32 * 1e12, card.tf32 * 1e12, card.bf16 * 1e12, card.f16 * 1e12};
  for (size_t i = 0; i < kNumProductTypes; ++i) p.attention_flops[i] = kAttentionPart * p.product_flops[i];
  p.half_extent = kHalfExtent;
  p.vector_flops = card.f32 * 1e12;
  p.cache_bytes = card.cache_mib * (1 << 20) / 2;
  p.memory_bandwidth = p.optimizer_bandwidth = card.memory_gb_per_second * 1e9;
  p.cache_bandwidth = kCacheFactor * p.memory_bandwidth;
  p.launch_seconds = kLaunchSeconds;
  p.copy_in_bandwidth = p.copy_out_bandwidth = card.link_gb_per_second * 1e9;
  p.memory_bytes = static_cast<int64_t>(card.memory_gib * kUsablePart * (int64_t{1} << 30));
  p.context_bytes = static_cast<int64_t>(kContextBytes);
  return p;
}

std::string plain(std::string_view name) {
  std::string letters;
  for (const char c : name)
    if (c != '-' && c != '_' && c != ' ')
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

}  // namespace

const std::vector<std::string>& card_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Card& card : kCards) list.emplace_back(card.name);
    return list;
  }();
  return names;
}

std::vector<std::string> cards_with(int64_t bytes) {
  std::vector<MachineProfile> cards;
  for (const Card& card : kCards)
    if (MachineProfile profile = profile_of(card); profile.memory_bytes - profile.context_bytes >= bytes)
      cards.push_back(std::move(profile));
  std::ranges::stable_sort(cards, {}, &MachineProfile::memory_bytes);
  std::vector<std::string> names;
  for (const MachineProfile& card : cards) names.push_back(card.name);
  return names;
}

Result<MachineProfile> find_card(std::string_view name) {
  for (const Card& card : kCards)
    if (plain(card.name) == plain(name)) return profile_of(card);
  std::vector<std::string> known = card_names();
  known.insert(known.end(), {"auto", "built-in"});
  return Error{ErrorCode::kInvalidArgument, "no machine profile is called " + std::string(name),
               "runtime.profile", nearest_hint(name, known)};
}

MachineProfile generic_cpu(std::string_view isa) {
  // GFLOP/s of a core that were measured on servers (bench/results), rounded down.
  const double f32 = isa == "portable" ? 12e9 : isa == "avx2" ? 65e9 : 150e9;
  const double bf16 = isa == "amx" ? 600e9 : isa == "avx512_bf16" ? 1.5 * f32 : f32;
  MachineProfile p;
  p.name = "generic";
  p.source = "built in: a core of a server processor";
  p.instruction_set = isa;
  p.product_flops = {f32, f32, bf16, f32};
  for (size_t i = 0; i < kNumProductTypes; ++i) p.attention_flops[i] = 0.5 * p.product_flops[i];
  p.half_extent = 16;
  p.vector_flops = f32 / 6;
  p.cache_bytes = 1 << 20;
  p.cache_bandwidth = 24e9;
  p.memory_bandwidth = p.optimizer_bandwidth = 8e9;
  p.launch_seconds = 2e-6;
  p.copy_in_bandwidth = p.copy_out_bandwidth = 8e9;
  return p;
}

}  // namespace plimsoll::planner
