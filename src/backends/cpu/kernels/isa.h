// Selects the instruction set that this process uses, and reports which ones the CPU offers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plimsoll::cpu {

/// Each has what the ones before it have; see targets.h. The last two are AVX-512 and, for products of bf16
/// (attention's with its softmax), AVX512_BF16 or AMX tiles (which take AVX512_BF16 for granted); all else
/// runs on them as on kAvx512, to the bit.
enum class Isa { kPortable, kAvx2, kAvx512, kAvx512Bf16, kAmx };

/// "portable", "avx2", "avx512", "avx512_bf16" or "amx", as in PLIMSOLL_ISA.
std::string_view isa_name(Isa isa);

/// The last one that this CPU has and the system lets us use (AMX takes its leave, once a process).
Isa best_isa();
/// The one that is taken where none is named: on an Intel with AVX512_BF16 and without tiles kAvx512.
Isa fastest_isa();

/// Chooses for the whole process the last instruction set that the CPU has and that is not above `env`, the
/// value of PLIMSOLL_ISA; without one (null or empty) fastest_isa(). Call before the first kernel, or between
/// kernels. Errors: invalid_argument for any other word.
Result<Isa> select_isa(const char* env);

/// The one that kernels run with now.
Isa current_isa();

/// The CPU's features that matter to speed, as the Linux kernel spells them: "avx2", "fma", "avx512f",
/// "amx_bf16"...
std::vector<std::string> cpu_features();

}  // namespace plimsoll::cpu
