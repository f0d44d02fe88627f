// The forms of attention's kernels on matrix units. A module is compiled for one: MMA_WIDTH (the columns that
// heads are filled up to: 64, 128, 256), MMA_TYPE (kBf16, kF16 or, for TF32, kF32, by number) and MMA_DROPS
// (0, 1). Without these macros it is empty, but for the host, which has all forms and chooses by the
// arguments.
#pragma once

#include "backends/cuda/kernels/attention/attention_args.h"

#if defined(MMA_WIDTH)
#define MMA_HAS_WIDTH(width) (MMA_WIDTH == width)
#elif defined(PLIMSOLL_HOST_TWIN)
#define MMA_HAS_WIDTH(width) 1
#else
#define MMA_HAS_WIDTH(width) 0
#endif

// Form<type, width, drops>(a).run(shared memory).
#if defined(MMA_WIDTH)
#define MMA_ATTENTION_FORM(Form, width, a, ...) Form<MMA_TYPE, width, MMA_DROPS != 0>(a).run(__VA_ARGS__)
#else
#define MMA_ATTENTION_DROPS(Form, type, width, a, ...) \
  if (a.random == nullptr)                             \
    Form<type, width, false>(a).run(__VA_ARGS__);      \
  else                                                 \
    Form<type, width, true>(a).run(__VA_ARGS__)
#define MMA_ATTENTION_FORM(Form, width, a, ...)              \
  if (a.q.dtype == kBf16) {                                  \
    MMA_ATTENTION_DROPS(Form, kBf16, width, a, __VA_ARGS__); \
  } else if (a.q.dtype == kF16) {                            \
    MMA_ATTENTION_DROPS(Form, kF16, width, a, __VA_ARGS__);  \
  } else {                                                   \
    MMA_ATTENTION_DROPS(Form, kF32, width, a, __VA_ARGS__);  \
  }
#endif
