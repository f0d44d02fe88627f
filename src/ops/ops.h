// Builder functions of ops for models, optimizers and derivatives: a function an op. Each appends to the
// builder's graph.
//
// Conventions. B sequences of T tokens; the last axis is the feature axis. An optional operand is a
// ValueId{}. A reduction over rows (weight, bias and norm gradients, losses) runs in granules of kGranule
// rows, restarting at each index of axis 0 where the operand has rank >= 3 (a sequence), in order: first - or
// onto `acc`, where that is given and consumed - is stored, the others are added. So the bits do not depend
// on how the batch is split into micro-batches. The order within a granule is the kernel's, fixed for an
// instruction set.
//
// Dtypes. "Floating" operands are f32, bf16 or f16, each as it comes; arithmetic and statistics are f32, and
// a result is rounded once, when it is stored. Unless its line says otherwise a result has the dtype of the
// first operand, where two tensors are added or multiplied f32 if they differ; a gradient has that of what it
// is the gradient of, given by {out} where that is no operand. Statistics (rstd, mean, lse), losses and
// run-time scalars are f32. Ops with matrix products have {precision}: "tf32", "bf16", "f16" rounds their
// operands to that before they are multiplied (absent: as stored); sums are f32. Gradients of norms and of
// head and loss have {dw}: the dtype of their parameters' gradients, which accumulators then have (absent:
// the parameter's).
#pragma once

#include "ops/attention.h"
#include "ops/batched_matmul.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/gather.h"
#include "ops/linear.h"
#include "ops/loss.h"
#include "ops/norm.h"
#include "ops/optimizer.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "ops/strided.h"
#include "ops/structure.h"
