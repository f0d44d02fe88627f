#include "planner/cost/known_profiles.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>
#include <utility>

#include "io/suggest.h"

namespace plimsoll::planner {
namespace {

/// Dense rates in TFLOP/s: plain fp32, then the matrix units'. What the driver offers programs of its
/// memory is rounded down from what it is commonly reported to be: a card of that name has no less.
struct Card {
  std::string_view name;
  std::string_view driver_name;  ///< a part of what the driver calls it
  int capability;                ///< 0: no CUDA card
  int multiprocessors;
  double driver_gib, memory_gb_per_second;
  double f32, tf32, bf16, f16;
  double fp8, fp4;            ///< with sums in fp32; 0: no units that this program uses
  double link_gb_per_second;  ///< in each direction
  double cache_mib;
  std::string_view source;
};

constexpr Card kCards[] = {
    {"t4", "T4", 75, 40, 14.5, 320, 8.1, 8.1, 8.1, 65, 0, 0, 15.75, 4,
     "NVIDIA T4 Tensor Core GPU datasheet; no bf16, no tf32 units"},
    {"l4", "L4", 89, 58, 22, 300, 30.3, 60, 121, 121, 242, 0, 32, 48,
     "NVIDIA L4 Tensor Core GPU datasheet, half the sparse rates"},
    {"a10g", "A10G", 86, 80, 22, 600, 31.5, 35, 70, 70, 0, 0, 32, 6, "NVIDIA A10G Tensor Core GPU datasheet"},
    {"a100-40", "A100", 80, 108, 39.3, 1555, 19.5, 156, 312, 312, 0, 0, 32, 40,
     "NVIDIA A100 Tensor Core GPU datasheet, 40GB"},
    {"a100-80", "A100", 80, 108, 79.1, 2039, 19.5, 156, 312, 312, 0, 0, 32, 40,
     "NVIDIA A100 Tensor Core GPU datasheet, 80GB SXM"},
    {"h100", "H100", 90, 132, 79.1, 3350, 67, 494.5, 989.5, 989.5, 1979, 0, 64, 50,
     "NVIDIA H100 Tensor Core GPU datasheet, SXM, half the sparse rates"},
    {"h200", "H200", 90, 132, 139.7, 4800, 67, 494.5, 989.5, 989.5, 1979, 0, 64, 50,
     "NVIDIA H200 Tensor Core GPU datasheet, SXM, half the sparse rates"},
    {"b200", "B200", 100, 148, 178.3, 8000, 75, 1125, 2250, 2250, 4500, 9000, 64, 126,
     "NVIDIA HGX B200 datasheet, an eighth of the board, half the sparse rates"},
    {"rtx3090", "RTX 3090", 86, 82, 23.5, 936, 35.6, 35.6, 71, 71, 0, 0, 32, 6,
     "NVIDIA Ampere GA102 GPU architecture whitepaper, fp32 accumulation"},
    {"rtx4090", "RTX 4090", 89, 128, 23.5, 1008, 82.6, 82.6, 165.2, 165.2, 330.3, 0, 32, 72,
     "NVIDIA Ada GPU architecture whitepaper, fp32 accumulation"},
    {"rtx5090", "RTX 5090", 120, 170, 31.3, 1792, 104.8, 104.8, 209.5, 209.5, 419, 1676, 64, 96,
     "NVIDIA RTX Blackwell GPU architecture whitepaper, fp32 accumulation"},
    {"rtx-pro-6000", "RTX PRO 6000", 120, 188, 94.9, 1792, 125, 251.9, 503.8, 503.8, 1007.6, 2015.2, 64, 128,
     "NVIDIA RTX PRO Blackwell GPU architecture whitepaper, workstation edition"},
    {"mi300x", "MI300X", 0, 304, 191.5, 5300, 163.4, 653.7, 1307.4, 1307.4, 0, 0, 64, 256,
     "AMD Instinct MI300X data sheet"},
};

// What of a data sheet's rates this program's kernels reach, taken from the one page that was measured on a
// card (bench/results/2026-11-23-card-nvidia-h100.md) and assumed of all cards alike.
/// Products: 0.76 of the peak in fp32, 0.74 in tf32 and 0.84 in bf16 with operands of one constant, which is
/// quicker than random ones by a tenth.
static_assert(kDataSheetProductPart == 0.75);
/// Attention in fp32, and in fp16 and tf32 on Turing, runs on FMA units: 140 ms of a micro-batch's 260, 18 of
/// 67 TFLOP/s.
constexpr double kFmaAttentionPart = 0.27;
/// In bf16 and fp16 it runs on matrix units, by mma.sync. **Expected, not measured on any card yet**: two
/// thirds of what FlashAttention 2, whose kernels multiply by the same instructions, is published to reach in
/// forward and backward together: about 190 TFLOP/s of an A100's 312, and of an H100's 989, whose peak those
/// instructions do not reach (306 and 166 TFLOP/s, Dao-AILab/flash-attention#1893); on a B200 as much as on
/// an H100. In tf32 the same part of that precision's rate: its instructions multiply half as much at a time,
/// of operands of twice the bytes.
double matrix_attention_part(int capability) {
  return capability >= 100 && capability < 120 ? 0.06 : capability == 90 ? 0.13 : 0.4;
}
/// Products of FP8 and FP4 operands. **Expected, not measured on any card yet**: less than bf16's 0.75, since
/// a product that reads half the bytes waits for memory sooner; DeepGEMM publishes 0.78 of an H800's peak for
/// the largest shapes.
constexpr double kCodeProductPart = 0.65;
/// Fewer blocks than it has room for leave a card idle: SmolLM's 36 heads of 512 tokens reach half of that. A
/// multiprocessor holds two blocks of its 82 KiB of shared memory, on cards with 100 KiB one.
double blocks_at_once(int capability, int multiprocessors) {
  const bool holds_two = capability == 80 || capability == 90 || capability == 100 || capability == 0;
  return (holds_two ? 2.0 : 1.0) * multiprocessors;
}
/// Copies within the card reach 0.89 of the data sheet, norms and their gradients about half.
constexpr double kMemoryPart = 0.65, kOptimizerPart = 0.85;
/// Pinned copies: 54.8 of 64 GB/s.
constexpr double kLinkPart = 0.85;
/// In a graph.
constexpr double kLaunchSeconds = 1.1e-6;
/// A product has half its rate where an extent is so small: 2,048 x 1,536 x 576 reaches 0.47 of the peak.
constexpr double kHalfExtent = 128;
constexpr double kCacheFactor = 3;

MachineProfile profile_of(const Card& card) {
  MachineProfile p;
  p.name = card.name;
  p.source = card.source;
  p.rates = "data sheet";
  if (card.capability > 0) p.instruction_set = "sm_" + std::to_string(card.capability);
  for (size_t i = 0; const double rate : {card.f32, card.tf32, card.bf16, card.f16})
    p.product_flops[i++] = kDataSheetProductPart * rate * 1e12;
  p.fp8_flops = kCodeProductPart * card.fp8 * 1e12;
  p.fp4_flops = kCodeProductPart * card.fp4 * 1e12;
  p.attention_flops.fill(kFmaAttentionPart * card.f32 * 1e12);
  if (card.capability >= 80)
    for (const auto& [type, rate] : {std::pair(ProductType::kTf32, card.tf32),
                                     {ProductType::kBf16, card.bf16},
                                     {ProductType::kF16, card.f16}})
      p.attention_flops[static_cast<size_t>(type)] = matrix_attention_part(card.capability) * rate * 1e12;
  p.attention_half_blocks = blocks_at_once(card.capability, card.multiprocessors);
  p.half_extent = kHalfExtent;
  p.vector_flops = card.f32 * 1e12;
  p.cache_bytes = card.cache_mib * (1 << 20) / 2;
  p.memory_bandwidth = kMemoryPart * card.memory_gb_per_second * 1e9;
  p.optimizer_bandwidth = kOptimizerPart * card.memory_gb_per_second * 1e9;
  p.cache_bandwidth = kCacheFactor * p.memory_bandwidth;
  p.launch_seconds = kLaunchSeconds;
  p.copy_in_bandwidth = p.copy_out_bandwidth = kLinkPart * card.link_gb_per_second * 1e9;
  p.memory_bytes = static_cast<int64_t>(card.driver_gib * (int64_t{1} << 30));
  p.context_bytes = kCardContextBytes;
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
    if (MachineProfile profile = profile_of(card);
        card.capability > 0 && profile.memory_bytes - profile.context_bytes >= bytes)
      cards.push_back(std::move(profile));
  std::ranges::stable_sort(cards, {}, &MachineProfile::memory_bytes);
  std::vector<std::string> names;
  for (const MachineProfile& card : cards) names.push_back(card.name);
  return names;
}

namespace {

/// What runtime.profile takes.
std::string every_profile() {
  std::string cards, to_plan;
  for (const Card& card : kCards) {
    std::string& list = cuda_capability(profile_of(card)) > 0 ? cards : to_plan;
    list += (list.empty() ? "" : ", ") + std::string(card.name);
  }
  return "a card: " + cards + "; only to plan: " + to_plan +
         "; auto: this machine; built-in: default rates, nothing measured; or the path of a profile's file, "
         "which contains a / or ends in .json";
}

}  // namespace

Result<MachineProfile> find_card(std::string_view name) {
  const std::string wanted = plain(name);
  std::vector<std::string> known = card_names(), within;
  for (const Card& card : kCards) {
    if (plain(card.name) == wanted) return profile_of(card);
    if (wanted.size() > 1 && plain(card.name).find(wanted) != std::string::npos)
      within.emplace_back(card.name);
  }
  known.insert(known.end(), {"auto", "built-in"});
  std::string hint = io::nearest_name(name, known).empty() ? every_profile() : io::nearest_hint(name, known);
  if (!within.empty()) hint = "did you mean ";
  for (size_t i = 0; i < within.size(); ++i) hint += (i == 0 ? "" : " or ") + within[i];
  if (!within.empty()) hint += "?";
  return Error{ErrorCode::kInvalidArgument, "no machine profile is called " + std::string(name),
               "runtime.profile", hint};
}

std::optional<MachineProfile> card_called(std::string_view driver_name, int64_t memory_bytes) {
  // A part of a card (MIG) has the name of the whole, and neither its rates nor its memory.
  if (driver_name.find("MIG") != std::string_view::npos) return std::nullopt;
  const auto is_called = [&](const Card& card) {
    const size_t at = driver_name.find(card.driver_name);
    const auto is_letter = [&](size_t i) {
      return i < driver_name.size() && std::isalnum(static_cast<unsigned char>(driver_name[i])) != 0;
    };
    if (at == std::string_view::npos || is_letter(at + card.driver_name.size())) return false;
    return at == 0 || !is_letter(at - 1);
  };
  std::optional<MachineProfile> nearest;
  for (const Card& card : kCards) {
    if (!is_called(card)) continue;
    MachineProfile profile = profile_of(card);
    const auto off = [&](const MachineProfile& p) { return std::abs(p.memory_bytes - memory_bytes); };
    if (!nearest || off(profile) < off(*nearest)) nearest = std::move(profile);
  }
  return nearest;
}

MachineProfile card_of_no_known_rates() {
  MachineProfile p = *find_card("a100-40");
  p.name = "an unknown card";
  p.source = "none: plans are compared by the ratios of an average card";
  p.rates = kUnknownRates;
  p.instruction_set.clear();
  return p;
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
