// Which instruction sets a kernel file is compiled for: the compiler's baseline ("portable"), AVX2 and
// AVX-512. Include before hwy/highway.h and hwy/foreach_target.h; the choice is made at run time. What goes
// beyond AVX-512 (AVX512_BF16, AMX) is written in intrinsics in files of its own; see isa.h.
#pragma once

#include "hwy/detect_targets.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
