// What a machine can do, from which a plan estimates time: measured by `plimsoll calibrate`, taken from data
// sheets, or built in until it is measured.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plimsoll::planner {

/// How a product computes.
enum class ProductType : uint8_t { kF32, kTf32, kBf16, kF16 };
inline constexpr size_t kNumProductTypes = 4;
/// "f32", "tf32", "bf16", "f16".
std::string_view name(ProductType type);
/// Errors: nothing where no type is called so.
std::optional<ProductType> parse_product_type(std::string_view name);

/// A measured op, as `op_work` describes it.
struct OpPoint {
  std::string kind;
  ProductType type = ProductType::kF32;
  std::array<int64_t, 3> extents = {1, 1, 1};
  double rate = 0;  ///< work a second: operations of products, attention and the loss head, else bytes
};

/// Factors beyond this and its inverse are no measurement.
inline constexpr double kLeastFactor = 1.0 / 64;
/// What runs took of ops of one kind, against what the points say: `calibrate --from`.
struct OpFactor {
  std::string kind;
  ProductType type = ProductType::kF32;
  double factor = 1;  ///< on seconds
};

/// Rates are per second, of the whole machine with `threads` threads.
struct MachineProfile {
  std::string name, source;
  std::string rates = "uncalibrated";  ///< choices.rates: calibrated | measured | uncalibrated | data sheet
  std::string instruction_set;         ///< what the rates hold for; empty: a card
  int64_t threads = 1;
  std::array<double, kNumProductTypes> product_flops = {};    ///< of large products, by ProductType
  std::array<double, kNumProductTypes> attention_flops = {};  ///< forward and backward
  double half_extent = 0;  ///< an extent at which a product has half its rate, where no point says
  std::vector<OpPoint> points;
  std::vector<OpFactor> factors;
  double vector_flops = 0;  ///< arithmetic outside products
  double cache_bytes = 0;   ///< working sets up to this stay in the cache
  double cache_bandwidth = 0, memory_bandwidth = 0;
  double optimizer_bandwidth = 0;                            ///< of updates and norms of gradients
  double launch_seconds = 0;                                 ///< of an op
  double copy_in_bandwidth = 0, copy_out_bandwidth = 0;      ///< 0: no such link
  double disk_read_bandwidth = 0, disk_write_bandwidth = 0;  ///< 0: not known
  int64_t memory_bytes = 0;                                  ///< of a card, usable; 0: the host's memory
  int64_t context_bytes = 0;                                 ///< of these, what no plan owns
};

/// The version of the file format; others are refused.
inline constexpr int64_t kProfileVersion = 2;

std::string profile_json(const MachineProfile& profile);
/// Strict: every field once, none unknown, rates finite and within reason. Errors: kBadData.
Result<MachineProfile> parse_profile(std::string_view text);
/// Errors: kBadData, kIo; each names the file.
Result<MachineProfile> load_profile(const std::string& path);

}  // namespace plimsoll::planner
