// The rates of a machine, from which a plan estimates time: measured by `plimsoll calibrate`, taken from data
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

/// Parts of the rates that fewer threads than all reach, as they were measured.
struct ThreadShares {
  int64_t threads = 1;
  double products = 1, attention = 1, memory_bound = 1, updates = 1;
};

/// Rates are per second, of the whole machine with `threads` threads. A rate of 0 is not known, but where it
/// is said otherwise.
struct MachineProfile {
  std::string name, source;
  std::string rates = "uncalibrated";  ///< choices.rates: calibrated | measured | uncalibrated | data sheet
  std::string instruction_set;         ///< what the rates hold for; of a CUDA card "sm_90"
  int64_t threads = 1;
  std::array<double, kNumProductTypes> product_flops = {};    ///< of large products, by ProductType
  std::array<double, kNumProductTypes> attention_flops = {};  ///< forward and backward
  /// Of large products of FP8 and of FP4 operands on units for these formats: of a card in the list; 0: not
  /// known, and estimated as bf16's. No part of a file.
  double fp8_flops = 0, fp4_flops = 0;
  double half_extent = 0;  ///< an extent at which a product has half its rate, where no point says
  /// Blocks of 64 tokens of a head at which attention has half its rate, because fewer leave multiprocessors
  /// idle: of a card in the list; 0: it has its rate always. No part of a file.
  double attention_half_blocks = 0;
  std::vector<OpPoint> points;
  std::vector<OpFactor> factors;
  double vector_flops = 0;  ///< arithmetic outside products
  double cache_bytes = 0;   ///< working sets up to this stay in the cache
  double cache_bandwidth = 0, memory_bandwidth = 0;
  double optimizer_bandwidth = 0;  ///< of updates and norms of gradients
  double launch_seconds = 0;       ///< of an op
  /// Between the host's memory and the device's, to the device and from it; beside kernels that have all
  /// threads; and by how many seconds a second of a copy lengthens the kernels that run beside it.
  double copy_in_bandwidth = 0, copy_out_bandwidth = 0;
  double copy_in_beside_kernels = 0, copy_out_beside_kernels = 0;
  double copy_kernel_seconds = 0;
  /// The same of a disk, past the system's cache; each way alone, and while the other way is under way too.
  double disk_read_bandwidth = 0, disk_write_bandwidth = 0;
  double disk_read_beside_write = 0, disk_write_beside_read = 0;
  double disk_read_beside_kernels = 0, disk_write_beside_kernels = 0;
  double disk_kernel_seconds = 0;
  double disk_cached_bandwidth = 0;         ///< reads out of the system's cache
  std::string disk;                         ///< the folder whose disk that was; empty: none was measured
  std::vector<ThreadShares> fewer_threads;  ///< by rising number, all below `threads`
  int64_t memory_bytes = 0;                 ///< of a card, usable; 0: the host's memory
  int64_t context_bytes = 0;                ///< of these, what no plan owns
  double spread = 0;        ///< a share: by which rates differed between rounds of measuring, as a rule
  int64_t is_busy = 0;      ///< 1: other work took the processors away meanwhile
  int64_t measured_at = 0;  ///< seconds since 1970; 0: not known
};

/// Whether this machine was measured, by `calibrate` or at first use.
inline bool is_measured(const MachineProfile& p) { return p.rates == "calibrated" || p.rates == "measured"; }

/// Rates of a card that is not in the list: such a plan has no tokens/s.
inline constexpr const char* kUnknownRates = "unknown";

/// What the driver's context, the kernels and the graphs of a run take of a card, which no plan owns:
/// measured at 533 to 554 MiB on an H100 (driver 580, CUDA 13.0, eight works), the rest is for larger graphs.
inline constexpr int64_t kCardContextBytes = int64_t{640} << 20;

/// 90 of "sm_90"; 0 where it is no CUDA card's.
int cuda_capability(const MachineProfile& profile);

/// A share of an estimate by which another may be longer before it is told apart from it: under rates that a
/// few seconds measured what these differed by, within reason; under all others none.
double rates_margin(const MachineProfile& profile);

/// The profile with copies that a link of that many bytes a second and direction bounds as well; what was not
/// measured follows the link alone.
MachineProfile with_link(MachineProfile profile, double bytes_per_second);

/// The version of the file format; others are refused.
inline constexpr int64_t kProfileVersion = 4;

std::string profile_json(const MachineProfile& profile);
/// Strict: every field once, none unknown, rates finite and within reason. Errors: kBadData.
Result<MachineProfile> parse_profile(std::string_view text);
/// Errors: kBadData, kIo; each names the file.
Result<MachineProfile> load_profile(const std::string& path);

}  // namespace plimsoll::planner
