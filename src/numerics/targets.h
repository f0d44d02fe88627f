// The instruction sets that the vector code of this module is compiled for: as the CPU kernels, the
// compiler's baseline ("portable"), AVX2 and AVX-512. Include before hwy/highway.h and hwy/foreach_target.h;
// the choice is made at run time, for the whole process.
#pragma once

// The baseline has one lane, whatever the compiler: four in plain C++ would be a width of its own.
#ifndef HWY_BROKEN_EMU128
#define HWY_BROKEN_EMU128 1
#endif

#include "hwy/detect_targets.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
