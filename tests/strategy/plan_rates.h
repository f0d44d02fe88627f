// Rates that tests of plans go by, whatever machine they run on: the built-in ones of each instruction set,
// and those of machines that there might be.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "io/file.h"
#include "io/temporary_folder.h"
#include "part_of.h"
#include "planner/cost/known_profiles.h"

namespace plimsoll::strategy {

/// Of each the built-in rates are told apart.
inline constexpr std::array<const char*, 5> kInstructionSets = {"portable", "avx2", "avx512", "avx512_bf16",
                                                                "amx"};

/// Those that a landing looks at: avx2, which is all that a sanitizer sees, and mostly another (part_of.h).
inline std::vector<const char*> some_instruction_sets() {
  std::vector<const char*> some = {"avx2"};
  for (const char* other : part_of<const char*>({"portable", "avx512", "avx512_bf16", "amx"}, 5))
    some.push_back(other);
  return some;
}

/// Rates as a file, which a run names.
class RatesFile {
 public:
  explicit RatesFile(const planner::MachineProfile& profile) {
    EXPECT_TRUE(io::write_file_atomically(path(), planner::profile_json(profile)));
  }
  /// "runtime.profile=…": an override.
  [[nodiscard]] std::string setting() const { return "runtime.profile=" + path(); }

 private:
  [[nodiscard]] std::string path() const { return folder_.path("rates.json"); }
  io::TemporaryFolder folder_;
};

/// A machine that there might be: rates of a core, of memory and of links that hang together as rates do,
/// with measured ops for every second one. The same seed gives the same machine.
class RandomMachine {
 public:
  explicit RandomMachine(uint64_t seed) : engine_(seed) {
    profile_ = planner::generic_cpu(kInstructionSets[engine_() % kInstructionSets.size()]);
    profile_.name = "machine " + std::to_string(seed);
    const double speed = between(0.3, 3), type = between(0.8, 3);
    for (size_t i = 0; i < planner::kNumProductTypes; ++i) {
      profile_.product_flops[i] *= speed * (i == 2 ? type : 1);
      profile_.attention_flops[i] = profile_.product_flops[i] * between(0.2, 0.8);
    }
    profile_.half_extent = between(1, 100);
    profile_.vector_flops *= speed * between(0.3, 3);
    profile_.memory_bandwidth = between(3e9, 200e9);
    profile_.cache_bandwidth = profile_.memory_bandwidth * between(1, 8);
    profile_.cache_bytes = between(256 << 10, 64 << 20);
    profile_.optimizer_bandwidth = profile_.memory_bandwidth * between(0.4, 1.2);
    profile_.launch_seconds = between(2e-7, 3e-5);
    profile_.copy_in_bandwidth = between(100e6, 50e9);
    profile_.copy_out_bandwidth = profile_.copy_in_bandwidth * between(0.5, 1.5);
    constexpr const char* kRates[] = {"uncalibrated", "measured", "calibrated"};
    profile_.rates = kRates[seed % 3];
    profile_.spread = between(0.001, 0.03);
    if (profile_.rates == "uncalibrated") return;
    add_points();
    profile_.copy_in_beside_kernels = profile_.copy_in_bandwidth * between(0.3, 1);
    profile_.copy_out_beside_kernels = profile_.copy_out_bandwidth * between(0.3, 1);
    profile_.copy_kernel_seconds = between(0.01, 0.9);
  }
  [[nodiscard]] const planner::MachineProfile& profile() const { return profile_; }

 private:
  /// Between the two, each factor as likely.
  double between(double low, double high) {
    const double part = static_cast<double>(engine_() >> 11) * 0x1p-53;
    return std::exp(std::lerp(std::log(low), std::log(high), part));
  }

  /// Products, attention, the loss head and sweeps, each scattering by a few percent, as measurements do.
  void add_points() {
    const auto add = [&](const char* kind, std::array<int64_t, 3> extents, double rate) {
      profile_.points.push_back({kind, planner::ProductType::kF32, extents, rate * between(0.95, 1.05)});
    };
    const auto reached = [&](int64_t n) {
      return static_cast<double>(n) / (static_cast<double>(n) + profile_.half_extent);
    };
    const double flops = profile_.product_flops[0];
    for (const char* kind : {"linear", "linear_t", "linear_dw"}) {
      const double of_kind = flops * between(0.7, 1);
      for (const int64_t rows : {32, 128, 512, 2048})
        for (const int64_t width : {64, 256, 1024})
          add(kind, {rows, width, width}, of_kind * reached(rows) * reached(width) * reached(width));
    }
    for (const int64_t rows : {32, 128, 512})
      add("head_loss", {rows, 1024, 128}, 0.7 * flops * reached(rows) * reached(1024) * reached(128));
    for (const int64_t tokens : {32, 128, 512})
      for (const char* kind : {"attention", "attention_grad"})
        add(kind, {6, tokens, 64}, profile_.attention_flops[0] * reached(tokens));
    for (const char* kind : {"swiglu", "swiglu_grad", "rms_norm", "add_rms_norm", "rms_norm_grad",
                             "rms_norm_grad_add", "rope_packed", "adamw_sweep", "sum_squares_sweep"})
      for (const int64_t bytes : {64 << 10, 1 << 20, 16 << 20})
        add(kind, {bytes, 1, 1},
            static_cast<double>(bytes) < profile_.cache_bytes ? profile_.cache_bandwidth
                                                              : profile_.memory_bandwidth);
  }

  std::mt19937_64 engine_;
  planner::MachineProfile profile_;
};

}  // namespace plimsoll::strategy
