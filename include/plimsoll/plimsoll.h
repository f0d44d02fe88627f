// Plimsoll's C++ interface: models of one's own, trained in a memory that is known before the first step.
//
//   a Module's forward() ── plan({.inputs, .loss, .optimizer, .memory_budget}) ──► Plan ── Session ──
//   step(batch)
//
// Everything here is inline over the C functions of libplimsoll.so.0 (plimsoll_c.h). docs/library.md is a
// tour.
#pragma once

#include "plimsoll/array.h"        // Array, Tensor, Batch: what goes in
#include "plimsoll/data_loader.h"  // DataLoader: data sets of one's own
#include "plimsoll/error.h"        // Error and its kinds
#include "plimsoll/functional.h"   // functions of values
#include "plimsoll/layers.h"       // Linear, Embedding, RMSNorm, LayerNorm, Dropout
#include "plimsoll/make_plan.h"    // plan()
#include "plimsoll/module_list.h"  // Module, Parameter, ModuleList
#include "plimsoll/optimizers.h"   // AdamW and others, with groups
#include "plimsoll/plan.h"         // Plan: what a step takes
#include "plimsoll/regions.h"      // checkpoint, checkpoint_sequential, autocast
#include "plimsoll/result.h"       // Result, where exceptions are switched off
#include "plimsoll/schedules.h"    // learning rates
#include "plimsoll/session.h"      // Session: steps
