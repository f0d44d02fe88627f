// The instruction sets that a kernel file is compiled for: the compiler's baseline ("portable"), AVX2 and
// AVX-512. Include before hwy/highway.h and hwy/foreach_target.h; the choice is made at run time. What goes
// beyond AVX-512 (AVX512_BF16, AMX) is written in intrinsics in files of its own; see isa.h.
#pragma once

// The baseline has one lane, whatever the compiler: four in plain C++ would be a width of its own.
#ifndef HWY_BROKEN_EMU128
#define HWY_BROKEN_EMU128 1
#endif

#include "hwy/detect_targets.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
