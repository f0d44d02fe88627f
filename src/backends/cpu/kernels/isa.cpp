// The choice rests on Highway's own test of the CPU (and of what the system saves of its registers); a cap
// disables the targets above it. AVX512_BF16 and AMX, which Highway 1.0.3 does not know, are tested here.
#include "backends/cpu/kernels/isa.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "backends/cpu/kernels/targets.h"
#include "hwy/targets.h"

namespace plimsoll::cpu {
namespace {

constexpr Isa kAll[] = {Isa::kPortable, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx};
// What select_isa allows beyond Highway's targets: a cap that was named, or what is fastest.
constexpr Isa kFastest{-1};
std::atomic<Isa> g_cap = kFastest;

// Everything better than `isa`: lower bits are better targets, the highest one is the fallback.
constexpr int64_t disabled_above(Isa isa) {
  return isa >= Isa::kAvx512 ? HWY_AVX3 - 1 : isa == Isa::kAvx2 ? HWY_AVX2 - 1 : 2 * HWY_AVX2 - 1;
}

// Highway 1.0.3 forgets disabled targets while it detects: SupportedTargets() leaves *all* of the CPU's as
// chosen and only returns the masked ones. Hence the Update after each call of it.
void choose_again() { hwy::GetChosenTarget().Update(hwy::SupportedTargets()); }

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
  return r;
}

// AMX's tiles are state that Linux saves only for processes that asked for it (arch_prctl(2) of 5.16).
bool request_tiles() {
#ifdef SYS_arch_prctl
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

// The best of the sets that extend kAvx512.
Isa best_extension() {
  static const Isa best = [] {
    const Registers l7 = cpuid(7, 0), l71 = cpuid(7, 1);
    const bool bf16 = l71.eax >> 5 & 1u, amx = (l7.edx >> 24 & 1u) && (l7.edx >> 22 & 1u);
    return !bf16 ? Isa::kAvx512 : amx && request_tiles() ? Isa::kAmx : Isa::kAvx512Bf16;
  }();
  return best;
}

bool is_intel() {
  const Registers l0 = cpuid(0, 0);
  return l0.ebx == 0x756e6547 && l0.edx == 0x49656e69 && l0.ecx == 0x6c65746e;  // "GenuineIntel"
}

// Intel's cores are made to multiply bf16 in tiles: vdpbf16ps does half the operations of fp32's fma there
// (87 against 178 GFLOP/s a core of family 6, model 207; on AMD's Zen 5 twice as many). Where the tiles are
// not to be had the kernels of fp32 are the faster ones.
Isa fastest_extension() {
  static const bool has_slow_bf16 = is_intel();
  const Isa best = best_extension();
  return best == Isa::kAvx512Bf16 && has_slow_bf16 ? Isa::kAvx512 : best;
}

Isa allowed_extension() {
  const Isa cap = g_cap.load(std::memory_order_relaxed);
  return cap == kFastest ? fastest_extension() : std::min(best_extension(), cap);
}

// The row of every dispatch table that is called now.
Isa current_target() {
  if (!hwy::GetChosenTarget().IsInitialized()) choose_again();
  const size_t row = hwy::GetChosenTarget().GetIndex();
  const auto row_of = [](int64_t target) {
    return hwy::Num0BitsBelowLS1Bit_Nonzero64(static_cast<uint64_t>(HWY_CHOSEN_TARGET_SHIFT(target)));
  };
  return row == row_of(HWY_AVX3) ? Isa::kAvx512 : row == row_of(HWY_AVX2) ? Isa::kAvx2 : Isa::kPortable;
}

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Bf16:
      return "avx512_bf16";
    case Isa::kAmx:
      return "amx";
  }
  return {};
}

Isa current_isa() {
  const Isa target = current_target();
  return target < Isa::kAvx512 ? target : std::max(target, allowed_extension());
}

Isa best_isa() {
  static const Isa best = [] {
    const Isa capped = current_target();
    hwy::DisableTargets(0);
    choose_again();
    const Isa uncapped = current_target();
    hwy::DisableTargets(disabled_above(capped));
    choose_again();
    return uncapped == Isa::kAvx512 ? best_extension() : uncapped;
  }();
  return best;
}

Isa fastest_isa() { return best_isa() < Isa::kAvx512 ? best_isa() : fastest_extension(); }

Result<Isa> select_isa(const char* env) {
  Isa cap = kFastest;
  if (env != nullptr && *env != '\0') {
    bool known = false;
    for (const Isa isa : kAll)
      if (isa_name(isa) == env) cap = isa, known = true;
    if (!known)
      return Error{.code = ErrorCode::kInvalidArgument,
                   .what = "unknown instruction set '" + std::string(env) + "'",
                   .where = "PLIMSOLL_ISA",
                   .hint = "use portable, avx2, avx512, avx512_bf16 or amx, or unset it"};
  }
  g_cap.store(cap, std::memory_order_relaxed);
  hwy::DisableTargets(disabled_above(cap == kFastest ? Isa::kAmx : cap));
  choose_again();
  return current_isa();
}

std::vector<std::string> cpu_features() {
  const Registers l1 = cpuid(1, 0), l7 = cpuid(7, 0), l71 = cpuid(7, 1);
  const struct {
    const char* name;
    unsigned word;
    int bit;
  } all[] = {
      {"sse4_2", l1.ecx, 20},      {"avx", l1.ecx, 28},         {"fma", l1.ecx, 12},
      {"f16c", l1.ecx, 29},        {"bmi2", l7.ebx, 8},         {"avx2", l7.ebx, 5},
      {"avx_vnni", l71.eax, 4},    {"avx512f", l7.ebx, 16},     {"avx512dq", l7.ebx, 17},
      {"avx512bw", l7.ebx, 30},    {"avx512vl", l7.ebx, 31},    {"avx512_vnni", l7.ecx, 11},
      {"avx512_bf16", l71.eax, 5}, {"avx512_fp16", l7.edx, 23}, {"amx_tile", l7.edx, 24},
      {"amx_bf16", l7.edx, 22},    {"amx_int8", l7.edx, 25},
  };
  std::vector<std::string> names;
  for (const auto& f : all)
    if (f.word >> f.bit & 1u) names.emplace_back(f.name);
  return names;
}

}  // namespace plimsoll::cpu
